"""Generates the site's API reference and its page of errors from the comments of the contract."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from google.api import annotations_pb2, field_behavior_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

import contract
from engine.melding.presets import GAME_OPTIONS

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = "rummikub.v1"
RULES: Final = ROOT / "docs" / "rules.md"
TEXTS: Final = ROOT / "service" / "messages" / "en.json"

SECTIONS: Final = (
    ("The request", 1),
    ("The caller", 101),
    ("The state of the game", 201),
    ("The state of the turn", 301),
    ("The server", 401),
    ("Violations: tiles", 501),
    ("Violations: melds", 601),
    ("Violations: the initial meld", 701),
    ("Violations: jokers and the table", 801),
    ("Violations: variants", 901),
)
"""The headings of the page of errors, each with the number of its first reason."""

VIOLATION: Final = "Violation"
WHAT_TO_DO: Final = (
    ("INVALID_ARGUMENT", "The program sent something malformed. Correct it; `BadRequest` names the field."),
    ("UNAUTHENTICATED", "Send `authorization: Bearer <token>` with a token as the service returned it, or none."),
    ("PERMISSION_DENIED", "Send the token that the RPC needs: that of a seat, or of the host."),
    ("NOT_FOUND", "Check the id or the code, and that the token belongs to the game. Games expire."),
    ("ALREADY_EXISTS", "Ask the player for another name, or use the seat that the caller has."),
    (
        "FAILED_PRECONDITION",
        "The game or its rules do not allow this now. Show the player the text of the reason; do not retry.",
    ),
    ("ABORTED", "The game has changed. Read it again, and let the player decide again."),
    ("OUT_OF_RANGE", "Start again without a position: no `etag`, `after_revision` 0, or `GetGame` without a revision."),
    ("RESOURCE_EXHAUSTED", "Retry after the delay in `RetryInfo`, with the same `request_id`."),
    (
        "UNAVAILABLE",
        "Retry after the delay in `RetryInfo`, with the same `request_id`. The clients do so by themselves.",
    ),
    ("DEADLINE_EXCEEDED", "Send the same request again, with the same `request_id`: it is applied once."),
    ("INTERNAL", "A fault of the server. Report it with the `x-request-id` of the trailing metadata."),
    (
        "UNIMPLEMENTED",
        "No reason comes with it: the server is older than the client, or it is the validation listener, which has "
        "only ValidationService.",
    ),
    (
        VIOLATION,
        "Show the player the text of the reason at `subject`. `TurnService` refuses the turn with "
        "`FAILED_PRECONDITION` and lists all violations; `ValidationService` returns OK with the list. "
        "The turn goes on: the player corrects the play, draws or passes.",
    ),
)
"""The action of a client after a refusal, by status code, and after a violation of the rules."""

SCALARS: Final = {
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_BYTES: "bytes",
    FieldDescriptorProto.TYPE_DOUBLE: "double",
    FieldDescriptorProto.TYPE_FLOAT: "float",
    FieldDescriptorProto.TYPE_INT32: "int32",
    FieldDescriptorProto.TYPE_INT64: "int64",
    FieldDescriptorProto.TYPE_SINT32: "sint32",
    FieldDescriptorProto.TYPE_STRING: "string",
    FieldDescriptorProto.TYPE_UINT32: "uint32",
    FieldDescriptorProto.TYPE_UINT64: "uint64",
}

CODE: Final = re.compile(r"`[^`]*`")
CODE_WITH_REASONS: Final = re.compile(r"\b([A-Z]+(?:_[A-Z]+)*) \(((?:[^()]|\([^()]*\))*)\)")
NAME: Final = re.compile(r"\b[A-Za-z][A-Za-z0-9]*(?:[_.][A-Za-z0-9]+)*\b")


def _anchor(name: str) -> str:
    return name.lower()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n\n", "<br>").replace("\n", " ")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + " --- |" * len(head)
    yield from ("| " + " | ".join(map(_cell, row)) + " |" for row in rows)
    yield ""


@dataclass(frozen=True)
class Reference:
    """The pages of a contract: `pages()` returns their Markdown by file name."""

    files: tuple[FileDescriptorProto, ...] = field(default_factory=lambda: tuple(contract.described().values()))

    def pages(self) -> dict[str, str]:
        """Returns each page's Markdown by its path in the site, without links into other parts of the site."""
        written = {"api/index.md": self._overview(), "errors.md": self._errors()}
        for file in self.files:
            if not self._is_errors(file):
                written[self._page(file)] = self._file(file)
        return {path: "\n".join(lines).rstrip() + "\n" for path, lines in written.items()}

    # Names and links

    @staticmethod
    def _is_errors(file: FileDescriptorProto) -> bool:
        return file.name.endswith("/error_reason.proto")

    @staticmethod
    def _page(file: FileDescriptorProto) -> str:
        return f"api/{Path(file.name).stem.replace('_', '-')}.md"

    @cached_property
    def comments(self) -> dict[str, str]:
        """The comment of everything that has one, by its name; see contract.comments."""
        return {name: text for file in self.files for name, text in contract.comments(file).items()}

    @cached_property
    def targets(self) -> dict[str, str]:
        """Where each name of the contract is explained: a path from the site's root, with an anchor."""
        found: dict[str, str] = {}
        for file in self.files:
            page = self._page(file)
            for message in file.message_type:
                found[message.name] = f"{page}#{_anchor(message.name)}"
                found |= {f"{message.name}.{f.name}": found[message.name] for f in message.field}
                if message.name == "MeldingRuleset":
                    found |= {option: f"options.md#{option}" for option in GAME_OPTIONS if "_" in option}
                    found["preset"] = ""
            for kind in file.enum_type:
                found[kind.name] = f"{page}#{_anchor(kind.name)}"
                found |= {value.name: found[kind.name] for value in kind.value}
            for service in file.service:
                found[service.name] = page
                found |= {method.name: f"{page}#{_anchor(method.name)}" for method in service.method}
        for name, target in self.reasons.items():
            found[name] = target
        found["ErrorReason"] = found["ERROR_REASON_UNSPECIFIED"] = "errors.md"
        found |= {
            f"R{number}": f"rules.md#r{number}" for number in range(1, 100) if f"**R{number}** " in RULES.read_text()
        }
        return {name: target for name, target in found.items() if target}

    @cached_property
    def reasons(self) -> dict[str, str]:
        """Where each reason is explained, by its name."""
        return {name: f"errors.md#{_anchor(name)}" for name, _ in self._reasons()}

    def _reasons(self) -> Iterator[tuple[str, int]]:
        file = next(file for file in self.files if self._is_errors(file))
        for value in file.enum_type[0].value:
            if value.number:
                yield value.name, value.number

    def _linked(self, text: str, page: str, own: str = "") -> str:
        """Links every name of the contract in a text, except the name that the text explains."""

        def link(match: re.Match[str]) -> str:
            name = match.group()
            target = self.targets.get(name)
            if target is None or name == own:
                return name
            return f"[{name}]({relative(target, page)})"

        def linked(prose: str) -> str:
            return NAME.sub(link, prose).replace("<", "&lt;")

        parts, position = [], 0
        for code in CODE.finditer(text):
            parts += [linked(text[position : code.start()]), code.group()]
            position = code.end()
        return "".join([*parts, linked(text[position:])])

    def _comment(self, name: str, page: str) -> str:
        return self._linked(self.comments.get(name, ""), page, name.rpartition(".")[2])

    # The overview

    def _overview(self) -> Iterator[str]:
        yield from ("# API reference", "")
        yield "Generated from the contract, `proto/rummikub/v1/`. Every name links to its description."
        yield ""
        for file in self.files:
            for service in file.service:
                yield from (f"## [{service.name}]({relative(self.targets[service.name], 'api/index.md')})", "")
                yield self._comment(service.name, "api/index.md").partition("\n\n")[0]
                yield ""
                yield from self._methods(service, "api/index.md")
        yield from ("## Types", "")
        rows = []
        for file in self.files:
            if not file.service and not self._is_errors(file):
                names = [*(message.name for message in file.message_type), *(kind.name for kind in file.enum_type)]
                page = relative(self._page(file), "api/index.md")
                links = ", ".join(f"[{name}]({relative(self.targets[name], 'api/index.md')})" for name in names)
                rows.append((f"[{_title(file)}]({page})", links))
        yield from _table(("page", "messages and enums"), [*rows, ("[Errors](../errors.md)", "ErrorReason")])

    def _methods(self, service: ServiceDescriptorProto, page: str) -> Iterator[str]:
        rows = []
        for method in service.method:
            link = f"[{method.name}]({relative(self.targets[method.name], page)})"
            first = re.split(r"(?<=\.)\s", self._comment(f"{service.name}.{method.name}", page))[0]
            rows.append((link, first))
        yield from _table(("RPC", "effect"), rows)

    # A page for each file

    def _file(self, file: FileDescriptorProto) -> Iterator[str]:
        page = self._page(file)
        yield from (f"# {_title(file)}", "", f"Package `{PACKAGE}`, file `proto/{file.name}`.", "")
        messages = {message.name: message for message in file.message_type}
        for service in file.service:
            yield from (self._comment(service.name, page), "")
            yield from self._methods(service, page)
            for method in service.method:
                own = [messages.pop(name) for name in _types(method) if name in messages]
                yield from self._method(service, method, own, page)
        if file.service and (messages or file.enum_type):
            yield from ("## Other messages and enums", "")
        for message in messages.values():
            yield from self._message(message, page, "###" if file.service else "##")
        for kind in file.enum_type:
            yield from self._enum(kind, page, "###" if file.service else "##")

    def _method(
        self,
        service: ServiceDescriptorProto,
        method: MethodDescriptorProto,
        own: Sequence[DescriptorProto],
        page: str,
    ) -> Iterator[str]:
        name = f"{service.name}.{method.name}"
        text, _, errors = self.comments[name].partition("Errors:")
        request, response = (f"[{kind}]({relative(self.targets[kind], page)})" for kind in _types(method))
        sent = "stream of " * method.client_streaming + request
        returned = "stream of " * method.server_streaming + response
        yield from (f"## {method.name}", "", f"{sent} → {returned}", "")
        yield from (self._linked(text.strip(), page, method.name), "")
        yield from (f"* gRPC: `/{PACKAGE}.{service.name}/{method.name}`", *http_lines(method))
        yield ""
        if errors:
            yield from self._errors_of(errors.strip(), page)
        for message in own:
            yield from self._message(message, page, "###")

    def _errors_of(self, text: str, page: str) -> Iterator[str]:
        """Yields the errors of an RPC, a line for each status code."""
        found = list(CODE_WITH_REASONS.finditer(text))
        rest = CODE_WITH_REASONS.sub("", text).strip(" ,.;")
        yield from ("**Errors**", "")
        for match in found:
            yield f"* `{match[1]}`: {self._linked(match[2], page)}"
        if re.search(r"\w", rest):
            yield f"* {self._linked(rest, page)}"
        yield ""

    def _message(self, message: DescriptorProto, page: str, heading: str) -> Iterator[str]:
        yield from (f"{heading} {message.name}", "", self._comment(message.name, page), "")
        entries = {f".{PACKAGE}.{message.name}.{nested.name}": nested for nested in message.nested_type}
        if not message.field:
            yield from ("No fields.", "")
            return
        rows = [
            (
                f"`{member.name}`<br>{self._type(member, entries, page)}",
                _badge(message, member),
                self._comment(f"{message.name}.{member.name}", page),
            )
            for member in message.field
        ]
        yield from _table(("field", "", "meaning"), rows)

    def _type(self, member: FieldDescriptorProto, entries: dict[str, DescriptorProto], page: str) -> str:
        if member.type_name in entries:
            key, value = entries[member.type_name].field
            return f"map of {self._type(key, {}, page)} to {self._type(value, {}, page)}"
        name = member.type_name.removeprefix(f".{PACKAGE}.").removeprefix(".")
        kind = SCALARS.get(member.type, name)
        text = f"[{kind}]({relative(self.targets[kind], page)})" if kind in self.targets else kind
        return f"repeated {text}" if member.label == FieldDescriptorProto.LABEL_REPEATED else text

    def _enum(self, kind: EnumDescriptorProto, page: str, heading: str) -> Iterator[str]:
        yield from (f"{heading} {kind.name}", "", self._comment(kind.name, page), "")
        rows = [(f"`{value.name}`", str(value.number), self._comment(value.name, page)) for value in kind.value]
        yield from _table(("value", "number", "meaning"), rows)

    # The page of errors

    def _errors(self) -> Iterator[str]:
        page = "errors.md"
        texts = json.loads(TEXTS.read_text())["reasons"]
        yield from ("# Errors", "", self._comment("ErrorReason", page), "")
        yield "`ListMessages` returns the texts for players in ten languages. Each reason of the contract is below."
        yield from (
            "",
            "## What to do",
            "",
            "What a client does depends on the status code, and on the reason where it says so.",
            "",
        )
        for code, advice in WHAT_TO_DO:
            yield from (f"### {code}", "", advice, "")
        sections = {first: title for title, first in SECTIONS}
        section = ""
        returned = self._returned_by()
        for name, number in sorted(self._reasons(), key=lambda reason: reason[1]):
            title = sections[max(first for first in sections if first <= number)]
            if title != section:
                section = title
                yield from (f"## {title}", "")
            code, meaning, metadata = parts_of_reason(self.comments[name])
            yield from (f"### {name}", "")
            parts = re.findall(r"[A-Z_]{4,}|[Vv]iolation", code)
            links = " or ".join(
                f"[{part.capitalize() if part.islower() else part}](#{_anchor(part)})" for part in parts
            )
            yield from (f"{links}, number {number}", "", self._linked(meaning, page, name), "")
            if metadata:
                yield f"* Metadata: {self._linked(metadata, page, name)}"
            if name in texts:
                yield f"* Text for players: “{texts[name]}”"
            if name in returned:
                calls = ", ".join(f"[{call}]({relative(self.targets[call], page)})" for call in returned[name])
                yield f"* Returned by: {calls}"
            yield ""

    def _returned_by(self) -> dict[str, list[str]]:
        """Returns the RPCs whose comments name a reason, by reason; a service if it names it for all of its RPCs."""
        found: dict[str, list[str]] = {}
        for file in self.files:
            for service in file.service:
                general = self.comments[service.name].partition("Every RPC may return")[2]
                for name in dict.fromkeys(re.findall(r"\b[A-Z_]{4,}\b", general)):
                    if name in self.reasons:
                        found.setdefault(name, []).append(service.name)
                for method in service.method:
                    errors = self.comments[f"{service.name}.{method.name}"].partition("Errors:")[2]
                    for name in dict.fromkeys(re.findall(r"\b[A-Z_]{4,}\b", errors)):
                        if name in self.reasons:
                            found.setdefault(name, []).append(method.name)
        return found


def parts_of_reason(comment: str) -> tuple[str, str, str]:
    """Returns the status code of a reason, its meaning, and its metadata keys."""
    first, _, meaning = comment.partition(". ")
    if ";" in first or " for " in first:
        return first, comment, ""
    meaning, _, metadata = meaning.partition(" Metadata: ")
    return first, meaning, metadata


def _title(file: FileDescriptorProto) -> str:
    if file.service:
        return file.service[0].name
    words = Path(file.name).stem.replace("_", " ")
    return f"Messages: {words}"  # not the name of a message alone: anchors are unique


def _types(method: MethodDescriptorProto) -> tuple[str, str]:
    prefix = f".{PACKAGE}."
    return method.input_type.removeprefix(prefix), method.output_type.removeprefix(prefix)


def http_lines(method: MethodDescriptorProto) -> Iterator[str]:
    """Yields a line for each URL of an RPC."""
    rule = method.options.Extensions[annotations_pb2.http]
    for binding in (rule, *rule.additional_bindings):
        verb = binding.WhichOneof("pattern")
        if verb is not None:
            path = binding.custom.path if verb == "custom" else getattr(binding, verb)
            body = f", body `{binding.body}`" if binding.body else ""
            yield f"* HTTP: `{verb.upper()} {path}`{body}"


def _badge(message: DescriptorProto, member: FieldDescriptorProto) -> str:
    """Returns notes on a field: whether a request must set it, whether 0 differs from unset, and its oneof."""
    behaviors = member.options.Extensions[field_behavior_pb2.field_behavior]
    notes = [field_behavior_pb2.FieldBehavior.Name(value).lower() for value in behaviors]
    if member.proto3_optional:
        notes.append("unset is not 0")
    elif member.HasField("oneof_index"):
        notes.append(f"one of `{message.oneof_decl[member.oneof_index].name}`")
    return ", ".join(notes)


def relative(target: str, page: str) -> str:
    """Returns a link from one page of the site to another, both as paths from its root."""
    path, _, anchor = target.partition("#")
    if path == page:
        return f"#{anchor}" if anchor else Path(path).name
    up = "../" * page.count("/")
    folder = page.rpartition("/")[0]
    if folder and path.startswith(f"{folder}/"):
        up, path = "", path.removeprefix(f"{folder}/")
    return f"{up}{path}#{anchor}" if anchor else f"{up}{path}"
