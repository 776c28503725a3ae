"""The files of the contract import only files of their own layer and of those below."""

import re

from support.contract_files import FILES
from support.harness import CONTRACT, ROOT

LAYERS = ("rules", "game", "analysis", "records")
"""From the lowest to the highest."""
PAGE = ROOT / "docs" / "concepts" / "contract.md"


def layers() -> dict[str, str]:
    """Returns the layer of each file, as the page says."""
    rows = re.findall(r"^\| (\w+) \| ((?:`\w+`(?:, )?)+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: layer for layer, names in rows for name in re.findall(r"\w+", names)}


def stem(name: str) -> str:
    """Returns `game` for `rummikub/v1/game.proto`."""
    return name.removeprefix("rummikub/v1/").removesuffix(".proto")


def test_every_file_has_a_layer() -> None:
    assert set(layers()) == {stem(file.name) for file in FILES}
    assert tuple(dict.fromkeys(layers().values())) == LAYERS


def test_no_file_imports_a_higher_layer() -> None:
    rank = {file: LAYERS.index(layer) for file, layer in layers().items()}
    upward = [
        f"{stem(file.name)} imports {stem(imported.name)}"
        for file in FILES
        for imported in file.dependencies
        if imported.package == "rummikub.v1" and rank[stem(imported.name)] > rank[stem(file.name)]
    ]
    assert upward == []


def test_the_page_has_every_service() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert {service.name for service in CONTRACT} == set(re.findall(r"\| (\w+Service) \|", page))


def test_each_service_has_its_messages_in_its_file() -> None:
    """Each request and response lies in the file of the service that it belongs to."""
    elsewhere = [
        message.full_name
        for service in CONTRACT
        for rpc in service.methods
        for message in (rpc.input_type, rpc.output_type)
        if message.file is not service.file
    ]
    assert elsewhere == []
