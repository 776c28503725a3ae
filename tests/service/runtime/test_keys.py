"""The keys file: what it may contain, what is wrong with it, and how it is read again."""

import errno
import hashlib
import os
from pathlib import Path

import pytest
import structlog

from service.errors import ApiKeyInvalid, ApiKeyNotAllowed
from service.runtime.keys import HEADER, KEY_MAX, Keys, KeysFileError, new_key, read_keys

GAMES = "/rummikub.v1.GameService/CreateGame"


def sha256(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def written(folder: Path, text: str) -> Path:
    path = folder / "keys.toml"
    path.write_text(text)
    return path


WEB = f"""
[keys.web]
sha256 = ["{sha256("one")}", "{sha256("two")}"]
services = ["GameService", "TurnService"]
labels = ["league"]
calls = 7
games_per_minute = 0
proxy = true
position_searches = true
reissue_seat_tokens = true

[keys.partner]
certificate = "partner.example"
"""


def test_a_file_has_names_digests_services_labels_and_quotas(tmp_path: Path) -> None:
    keys = Keys(written(tmp_path, WEB))
    for sent in ("one", "two"):
        key = keys.identify(GAMES, [("other", "x"), (HEADER, sent)])
        assert (key.name, key.labels, key.is_proxy) == ("web", frozenset({"league"}), True)
        assert key.quotas == {"calls": 7, "games_per_minute": 0}
        assert key.rights == {"position_searches", "reissue_seat_tokens"}
    with pytest.raises(ApiKeyNotAllowed) as refusal:
        keys.identify("/rummikub.v1.ValidationService/ValidateTurn", [(HEADER, "one")])
    assert refusal.value.metadata == {"kind": "service", "name": "ValidationService"}


def test_a_client_certificate_identifies_a_caller_without_a_key(tmp_path: Path) -> None:
    keys = Keys(written(tmp_path, WEB))
    partner = keys.identify(GAMES, (), lambda: ["other", "partner.example"])
    assert (partner.name, partner.rights) == ("partner", frozenset())
    assert keys.identify(GAMES, [(HEADER, "one")], lambda: ["partner.example"]).name == "web"
    with pytest.raises(ApiKeyInvalid):
        keys.identify(GAMES, (), lambda: ["other"])
    with pytest.raises(ApiKeyInvalid):
        keys.identify(GAMES, [(HEADER, "wrong")], lambda: ["partner.example"])


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        ((HEADER, ""),),
        ((HEADER, "One"),),
        ((HEADER, "one "),),
        ((HEADER, sha256("one")),),
        ((HEADER, b"one"),),
        ((HEADER, "one"), (HEADER, "one")),
        ((HEADER, "one"), (HEADER, "wrong")),
        ((HEADER, "one" * KEY_MAX),),
        (("authorization", "Bearer one"),),
    ],
)
def test_a_call_without_one_valid_key_is_refused(tmp_path: Path, metadata: tuple[tuple[str, str | bytes], ...]) -> None:
    keys = Keys(written(tmp_path, WEB))
    with pytest.raises(ApiKeyInvalid):
        keys.identify(GAMES, metadata)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[keys.web\n", "line 1"),
        ("[keys]\nweb = 1", "keys.web: expected a table [keys.web]"),
        ("keys = 1", "keys: expected tables [keys.NAME]"),
        ("", "keys: there is none; expected tables [keys.NAME]"),
        ("# none\n[keys]\n", "keys: there is none; expected tables [keys.NAME]"),
        ("[key.web]", "key: unknown; expected keys"),
        ("[keys.Web]", "keys.Web: a name has 1 to 32 of a-z, 0-9, - and _"),
        ("[keys.web]", "keys.web: expected sha256 or certificate"),
        ('[keys.web]\nsha256 = "ab"', "keys.web.sha256: expected a list of texts"),
        ('[keys.web]\nsha256 = ["ab"]', "keys.web.sha256: expected SHA-256 digests"),
        (
            f'[keys.web]\nsha256 = ["{sha256("a")}"]\n[keys.app]\nsha256 = ["{sha256("a")}"]',
            "keys.app.sha256: the same",
        ),
        ('[keys.web]\ncertificate = "a"\n[keys.app]\ncertificate = "a"', "keys.app.certificate: the same"),
        ("[keys.web]\ncertificate = 1", "keys.web.certificate: expected a name"),
        ('[keys.web]\ncertificate = "a"\nquota = 1', "keys.web.quota: unknown; expected"),
        ('[keys.web]\ncertificate = "a"\ncalls = -1', "keys.web.calls: expected a whole number"),
        ('[keys.web]\ncertificate = "a"\ncalls = true', "keys.web.calls: expected a whole number"),
        ('[keys.web]\ncertificate = "a"\nservices = ["Games"]', "keys.web.services: unknown: Games"),
        ('[keys.web]\ncertificate = "a"\nlabels = [1]', "keys.web.labels: expected a list"),
        ('[keys.web]\ncertificate = "a"\nproxy = 1', "keys.web.proxy: expected true or false"),
        (
            '[keys.web]\ncertificate = "a"\nreissue_seat_tokens = "yes"',
            "keys.web.reissue_seat_tokens: expected true or false",
        ),
        ('[keys.web]\ncertificate = "a"\nrequire_tickets = true', "keys.web.ticket_keys: expected a key, because of"),
        ('[keys.web]\ncertificate = "a"\nticket_keys = ["none:"]', "keys.web.ticket_keys: expected EdDSA: or HS256:"),
        ('[keys.web]\ncertificate = "a"\nticket_keys = ["HS256:?"]', "keys.web.ticket_keys: expected EdDSA: or HS256:"),
        ('[keys.web]\ncertificate = "a"\nticket_keys = ["HS256:AAAA"]', "keys.web.ticket_keys: expected a secret of"),
        ('[keys.web]\ncertificate = "a"\nticket_keys = ["EdDSA:AAAA"]', "keys.web.ticket_keys: expected an Ed25519"),
        (
            f'[keys.web]\ncertificate = "a"\nticket_keys = ["EdDSA:{"A" * 43}"]\nticket_audience = ""',
            "keys.web.ticket_audience: expected a text",
        ),
    ],
)
def test_an_error_says_what_is_wrong_and_where(tmp_path: Path, text: str, problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(KeysFileError) as error:
        read_keys(path)
    assert str(error.value).startswith(f"{path}: ")
    assert problem in str(error.value)


def test_a_missing_or_binary_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeysFileError, match="No such file"):
        read_keys(tmp_path / "none.toml")
    path = tmp_path / "keys.toml"
    for content in (b"\xff\xfe", b"number = " + b"1" * 5_000, b"nested = " + b"[" * 10_000):
        path.write_bytes(content)
        with pytest.raises(KeysFileError):
            read_keys(path)


def test_a_changed_file_is_read_again_and_a_broken_one_is_not_used(tmp_path: Path) -> None:
    path = written(tmp_path, f'[keys.web]\nsha256 = ["{sha256("old")}"]')
    keys = Keys(path)
    with structlog.testing.capture_logs() as logs:
        keys.reload()
        assert logs == []
        path.write_text("[keys.web]\nsha256 = 1")
        os.utime(path, ns=(1, 1))
        for _ in range(3):
            keys.reload()
        assert [(log["event"], log["log_level"]) for log in logs] == [
            ("keys file not used; the keys read before it stay valid", "error")
        ]
        assert "keys.web.sha256: expected a list" in logs[0]["error"]
        assert keys.identify(GAMES, [(HEADER, "old")]).name == "web"
        path.unlink()
        for _ in range(2):
            keys.reload()
        assert keys.identify(GAMES, [(HEADER, "old")]).name == "web"
        path.write_text(f'[keys.web]\nsha256 = ["{sha256("half")}"]\n#')
        keys.reload()
        assert keys.identify(GAMES, [(HEADER, "old")]).name == "web", "an editor may still be writing"
        path.write_text(f'[keys.web]\nsha256 = ["{sha256("new")}"]')
        for _ in range(2):
            keys.reload()
    assert keys.identify(GAMES, [(HEADER, "new")]).name == "web"
    with pytest.raises(ApiKeyInvalid):
        keys.identify(GAMES, [(HEADER, "old")])


def test_the_keys_stay_when_the_file_is_emptied(tmp_path: Path) -> None:
    """A write that is cut short by a full disk leaves an empty file."""
    path = written(tmp_path, f'[keys.web]\nsha256 = ["{sha256("old")}"]')
    keys = Keys(path)
    with structlog.testing.capture_logs() as logs:
        path.write_text("")
        for _ in range(3):
            keys.reload()
    assert [(log["log_level"], log["error"]) for log in logs] == [
        ("error", f"{path}: keys: there is none; expected tables [keys.NAME]")
    ]
    assert keys.identify(GAMES, [(HEADER, "old")]).name == "web"


def test_a_changed_file_that_cannot_be_read_for_a_while_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, f'[keys.web]\nsha256 = ["{sha256("old")}"]')
    keys = Keys(path)
    path.write_text(f'[keys.web]\nsha256 = ["{sha256("new key")}"]')

    def fail(*_: object, **__: object) -> str:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with structlog.testing.capture_logs() as logs, monkeypatch.context() as without_descriptors:
        without_descriptors.setattr(Path, "read_text", fail)
        for _ in range(5):
            keys.reload()
    assert [log["error"] for log in logs] == [f"{path}: Too many open files"]
    assert keys.identify(GAMES, [(HEADER, "old")]).name == "web"
    keys.reload()
    assert keys.identify(GAMES, [(HEADER, "new key")]).name == "web"
    with pytest.raises(ApiKeyInvalid):
        keys.identify(GAMES, [(HEADER, "old")])


def test_new_keys_are_long_and_differ() -> None:
    made = {new_key() for _ in range(100)}
    assert len(made) == 100
    assert {len(key) for key in made} == {43}
