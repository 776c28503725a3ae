"""Texts for players in several languages: the catalogs of service/messages, as responses of ListMessages."""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from rummikub.v1 import tile_pb2, violation_pb2
from rummikub.v1 import validation_service_pb2 as pb
from service.codec.fields import invalid
from service.codec.tiles import reason_number

FALLBACK: Final = "en"
"""The language for languages without a catalog."""
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8}")
_DIRECTIONS: Final = {"ltr": pb.TEXT_DIRECTION_LEFT_TO_RIGHT, "rtl": pb.TEXT_DIRECTION_RIGHT_TO_LEFT}
_FOLDER: Final = files("service") / "messages"


@cache
def languages() -> tuple[str, ...]:
    """Returns the languages that have a catalog."""
    return tuple(sorted(file.name.removesuffix(".json") for file in _FOLDER.iterdir() if file.name.endswith(".json")))


def list_messages(request: pb.ListMessagesRequest) -> pb.ListMessagesResponse:
    """Returns the texts of a language, without them if the caller has them. Raises InvalidRequest."""
    if request.language and not _LANGUAGE.fullmatch(request.language):
        raise invalid("language", "expected a BCP 47 tag, such as `de` or `pt-BR`")
    base = request.language.partition("-")[0].lower()
    found = _catalog(base if base in languages() else FALLBACK)
    if request.etag == found.etag:
        return pb.ListMessagesResponse(language=found.language, etag=found.etag)
    return found


def advice(kind: str, **values: object) -> violation_pb2.Advice:
    """Returns a sentence of a coach in English, with the values that belong to its kind."""
    metadata = {key: str(value) for key, value in values.items()}
    text = re.sub(r"\{(\w+)\}", lambda found: metadata[found[1]], _advice_texts()[kind])
    return violation_pb2.Advice(kind=_advice_kind(kind), text=text, metadata=metadata)


@cache
def _advice_texts() -> Mapping[str, str]:
    return {
        violation_pb2.AdviceKind.Name(one.kind)[len("ADVICE_KIND_") :]: one.text for one in _catalog(FALLBACK).advice
    }


def _advice_kind(name: str) -> violation_pb2.AdviceKind.ValueType:
    return violation_pb2.AdviceKind.Value(f"ADVICE_KIND_{name}")


@cache
def _catalog(language: str) -> pb.ListMessagesResponse:
    """Returns all texts of a language. Cached: callers must not change it."""
    catalog = json.loads((_FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    response = pb.ListMessagesResponse(
        language=language,
        name=catalog["name"],
        direction=_DIRECTIONS[catalog["direction"]],
        reasons=(pb.ReasonText(reason=reason_number(name), text=text) for name, text in catalog["reasons"].items()),
        colors=(
            pb.ColorText(color=tile_pb2.TileColor.Value(f"TILE_COLOR_{name}"), name=text["name"], symbol=text["symbol"])
            for name, text in catalog["colors"].items()
        ),
        advice=(pb.AdviceText(kind=_advice_kind(name), text=text) for name, text in catalog["advice"].items()),
    )
    response.etag = hashlib.sha256(response.SerializeToString(deterministic=True)).hexdigest()[:32]
    return response
