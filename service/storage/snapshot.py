"""The stored bytes of games, drafts and memos."""

from dataclasses import replace
from itertools import pairwise
from typing import Final

from engine.game import Game
from engine.unions import Draft
from service.errors import StoredFormatUnknown
from service.model.challenge import Challenge
from service.model.change import Memo
from service.model.record import Record
from service.storage.formats import FORMATS
from service.storage.stored_form import form_of
from service.storage.stored_values import read_number, reading

FINGERPRINT_BYTES: Final = 32


def encode_record(record: Record) -> bytes:
    """Returns a game's stored bytes."""
    return FORMATS.write(form_of(Record).write(record))


@reading()
def decode_record(data: bytes) -> Record:
    """Returns a game from its stored bytes. Raises StoredFormatUnknown."""
    record: Record = form_of(Record).read(FORMATS.read(data))
    if not _has_its_seats(record.game):
        raise StoredFormatUnknown
    return record


def readable_record(data: bytes | None) -> Record | None:
    """Returns a listed game; None if it has expired or cannot be read."""
    try:
        return decode_record(data) if data else None
    except StoredFormatUnknown:
        return None


def _has_its_seats(game: Game) -> bool:
    """Returns whether a game names only its own seats.

    Every seat in the round has a rack and a place in the turn order.
    """
    seats, round_ = [player.seat for player in game.players], game.round
    if not _ascending([0, *seats]):
        return False
    if round_ is None:
        return True
    dealt_in = [rack.seat for rack in round_.racks]
    return (
        _ascending(dealt_in)
        and sorted(round_.order) == dealt_in
        and round_.turn.seat in dealt_in
        and round_.names_its_seats
        and set(seats).issuperset(dealt_in)
    )


def _ascending(seats: list[int]) -> bool:
    return all(seat < following for seat, following in pairwise(seats))


def encode_draft(draft: Draft) -> bytes:
    """Returns a draft's stored bytes, without its number."""
    return FORMATS.write(form_of(Draft).write(replace(draft, number=0)))


@reading()
def decode_draft(data: bytes, number: bytes | int) -> Draft:
    """Returns a draft from its stored bytes and its number. Raises StoredFormatUnknown."""
    draft: Draft = form_of(Draft).read(FORMATS.read(data))
    return replace(draft, number=read_number(int(number)))


def encode_challenge(challenge: Challenge) -> str:
    """Returns a challenge's stored text."""
    return FORMATS.write({"challenge": form_of(Challenge).write(challenge)}).decode()


@reading()
def decode_challenge(text: str) -> Challenge:
    """Returns a challenge from its stored text. Raises StoredFormatUnknown."""
    challenge: Challenge = form_of(Challenge).read(FORMATS.read(text.encode())["challenge"])
    return challenge


def encode_memo(memo: Memo) -> bytes:
    """Returns a memo's stored bytes: fingerprint, length of the salt, salt, answer."""
    return memo.fingerprint + bytes([len(memo.salt)]) + memo.salt + memo.answer


@reading()
def decode_memo(data: bytes) -> Memo:
    """Returns a memo from its stored bytes. Raises StoredFormatUnknown."""
    answer = FINGERPRINT_BYTES + 1 + data[FINGERPRINT_BYTES]
    return Memo(data[:FINGERPRINT_BYTES], data[answer:], data[FINGERPRINT_BYTES + 1 : answer])
