"""The gRPC reflection service, under both of its names.

grpcio-reflection has v1alpha only. Version 1, which clients try first, has the same messages in another package, so the
same bytes.
"""

from collections.abc import Iterable
from typing import Final

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import ServiceDescriptor
from grpc_reflection.v1alpha import reflection, reflection_pb2

from service.grpc_api.handlers import Service

_PACKAGES: Final = ".grpc.reflection.v1alpha.", ".grpc.reflection.v1."
"""The prefixes of names in v1alpha and in version 1."""


def _version_1() -> ServiceDescriptor:
    """Describes version 1 by v1alpha, so that clients can ask for its description; returns the service."""
    file = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(file)
    file.ClearField("options")
    file.name, file.package = "grpc/reflection/v1/reflection.proto", "grpc.reflection.v1"
    for field in (field for message in file.message_type for field in message.field if field.type_name):
        field.type_name = field.type_name.replace(*_PACKAGES)
    for method in file.service[0].method:
        method.input_type = method.input_type.replace(*_PACKAGES)
        method.output_type = method.output_type.replace(*_PACKAGES)
    descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
    return descriptor_pool.Default().FindServiceByName("grpc.reflection.v1.ServerReflection")


SERVICES: Final = (_version_1(), reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"])


def reflection_services(services: Iterable[str]) -> list[Service]:
    """Returns the services that describe some services and themselves."""
    names = [service.full_name for service in SERVICES]
    servicer = reflection.aio.ReflectionServicer(service_names=(*services, *names))
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    return [Service(name, {"ServerReflectionInfo": handler}) for name in names]
