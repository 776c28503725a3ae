"""Relays the changes of all games to a URL: signed, retried, and each at least once.

Usage: webhook_relay.py host:port url cursor-file

host:port is RUMMIKUB_ADMIN_LISTEN of a server. ADMIN_TOKEN is the operator's token, if the server requires one;
ADMIN_CA_FILE has the CA of its certificate, if it uses TLS. WEBHOOK_SECRET signs the requests: the receiver computes
HMAC-SHA256 of X-Rummikub-Time, a dot and the body, refuses another signature and a time that is too long ago, and
ignores a revision of a game that it has had.
"""

import hashlib
import hmac
import http.client
import os
import random
import sys
import time
import urllib.request
from pathlib import Path

import grpc
from google.protobuf.json_format import MessageToJson

from rummikub.admin.v1.admin_service_pb2 import WatchGamesRequest
from rummikub.admin.v1.admin_service_pb2_grpc import AdminServiceStub

ADDRESS, URL, CURSOR_FILE = sys.argv[1], sys.argv[2], Path(sys.argv[3])
SECRET = os.environ["WEBHOOK_SECRET"].encode()
METADATA = (("authorization", f"Bearer {token}"),) if (token := os.environ.get("ADMIN_TOKEN")) else ()
CA = Path(path).read_bytes() if (path := os.environ.get("ADMIN_CA_FILE")) else None
FIRST_PAUSE, LONGEST_PAUSE, TIMEOUT, RECONNECT_PAUSE = 0.2, 60.0, 10.0, 1.0  # seconds


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error. urllib would follow it with a GET, which has no body."""

    def redirect_request(self, *_: object) -> None:
        """Refuses a redirect."""


OPENER = urllib.request.build_opener(NoRedirects)


def post(body: bytes) -> None:
    """Sends one signed request. Raises OSError or HTTPException unless the receiver accepts it."""
    now = str(int(time.time()))
    signature = hmac.new(SECRET, f"{now}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"X-Rummikub-Time": now, "X-Rummikub-Signature": f"sha256={signature}"}
    request = urllib.request.Request(URL, body, {**headers, "Content-Type": "application/json"})  # noqa: S310 - the user's
    OPENER.open(request, timeout=TIMEOUT).close()


def deliver(body: bytes) -> None:
    """Sends a request until the receiver accepts it. Later changes wait, so they stay in order."""
    pause = FIRST_PAUSE
    while True:
        try:
            return post(body)
        except (OSError, http.client.HTTPException) as error:
            print(f"{URL}: {error!r}; retrying in about {pause:.1f} s", file=sys.stderr)
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads retries, no secret
        pause = min(2 * pause, LONGEST_PAUSE)


def relay(admin: AdminServiceStub) -> float:
    """Relays updates until the stream ends. Returns the pause before the next one, in seconds."""
    pause = RECONNECT_PAUSE
    cursor = CURSOR_FILE.read_text() if CURSOR_FILE.exists() else ""
    for update in admin.WatchGames(WatchGamesRequest(cursor=cursor, from_oldest=True), metadata=METADATA):
        if update.HasField("closing"):
            pause = update.closing.retry_delay.ToTimedelta().total_seconds()
        elif not update.HasField("heartbeat"):
            deliver(MessageToJson(update, indent=None).encode())
        new = CURSOR_FILE.with_suffix(".new")  # replaced in one step, so that the file always has a whole cursor
        new.write_text(update.cursor)
        new.replace(CURSOR_FILE)
    return pause


while True:
    new_channel = (
        grpc.secure_channel(ADDRESS, grpc.ssl_channel_credentials(CA)) if CA else grpc.insecure_channel(ADDRESS)
    )
    with new_channel as channel:
        try:
            pause = relay(AdminServiceStub(channel))
        except grpc.RpcError as lost:
            if lost.code() is not grpc.StatusCode.UNAVAILABLE:
                sys.exit(f"{ADDRESS}: {lost.code().name}: {lost.details()}")
            print(f"{ADDRESS}: {lost.details()}; reconnecting", file=sys.stderr)
            pause = RECONNECT_PAUSE
    time.sleep(pause)
