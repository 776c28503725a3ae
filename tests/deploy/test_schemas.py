"""Every resource of every overlay has the fields of its kind, and no others.

Kubernetes's own kinds are checked by kubernetes-validate. The other kinds are checked by the definitions that their
projects publish; those of the redis-operator, which no package has, by redis-operator.json, written by hand after its
release 0.26. Rules in CEL, and all that only a cluster knows, are not checked.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError
from kubernetes_validate import utils
from referencing import Registry, Resource

from support.deployment import OVERLAYS, Document, built
from tools.deploy_tools import DEFINITIONS

pytestmark = pytest.mark.slow

OLDEST = "1.31"
NEWEST = utils.latest_version()
REDIS_OPERATOR = json.loads((Path(__file__).parent / "redis-operator.json").read_text())
CUSTOM = {"GRPCRoute", "PrometheusRule", "ServiceMonitor", *REDIS_OPERATOR["kinds"]}


def distinct() -> list[Document]:
    """Returns the resources of all overlays, equal ones once."""
    return list({json.dumps(document): document for overlay in OVERLAYS for document in built(overlay)}.values())


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_resources_of_kubernetes_are_valid(version: str) -> None:
    for document in distinct():
        if document["kind"] not in CUSTOM:
            kubernetes_validate.validate(dict(document), version, strict=True)


@pytest.mark.parametrize("kind", sorted(CUSTOM))
def test_the_custom_resources_are_valid(kind: str) -> None:
    documents = [document for document in distinct() if document["kind"] == kind]
    assert documents
    for document in documents:
        validator(document["apiVersion"], kind).validate(document)


@pytest.mark.parametrize("kind", sorted(CUSTOM))
def test_an_unknown_field_is_noticed(kind: str) -> None:
    document = next(document for document in distinct() if document["kind"] == kind)
    broken = json.loads(json.dumps(document))
    broken["spec"]["clustrSize"] = 3
    with pytest.raises(ValidationError):
        validator(document["apiVersion"], kind).validate(broken)


@cache
def validator(api_version: str, kind: str) -> Draft202012Validator:
    """Returns the validator of a custom resource."""
    if kind in REDIS_OPERATOR["kinds"]:
        assert api_version == REDIS_OPERATOR["apiVersion"]
        return Draft202012Validator(
            {**REDIS_OPERATOR["kinds"][kind], "$defs": REDIS_OPERATOR["$defs"]}, registry=kubernetes_types()
        )
    group, _, version = api_version.partition("/")
    [definition] = [
        definition
        for definition in definitions()
        if (definition["spec"]["group"], definition["spec"]["names"]["kind"]) == (group, kind)
    ]
    [schema] = [known["schema"] for known in definition["spec"]["versions"] if known["name"] == version]
    return Draft202012Validator(strict(schema["openAPIV3Schema"]))


@cache
def definitions() -> tuple[Any, ...]:
    return tuple(yaml.load(file.read_text(), yaml.CSafeLoader) for file in DEFINITIONS.iterdir())


def strict(schema: object) -> Any:  # noqa: ANN401 - a JSON schema
    """Returns a schema that refuses unknown fields, as the API server prunes them."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    own = {name: strict(part) for name, part in schema.items()}
    is_closed = isinstance(schema.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields")
    return {"additionalProperties": False, **own} if is_closed and schema.get("type") == "object" else own


def kubernetes_types() -> Registry[Any]:
    """Returns the types of Kubernetes to which redis-operator.json refers."""
    version = max(utils.all_versions(), key=lambda text: tuple(map(int, text.split("."))))
    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / f"v{version}-local-strict"
    types = json.loads((folder / "_definitions.json").read_text())
    registry: Registry[Any] = Registry().with_resource(types["$id"], Resource.from_contents(types))
    return registry
