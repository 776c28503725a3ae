"""The forms of RUMMIKUB_REDIS_URL."""

import pytest
from redis.asyncio.connection import BlockingConnectionPool, SSLConnection, UnixDomainSocketConnection

from service.runtime.redis_url import (
    CLUSTER_FORM,
    ONE_FORM,
    SENTINEL_FORM,
    Address,
    Cluster,
    One,
    RedisUrlError,
    Sentinel,
    parse_redis_url,
)

PASSWORD = "hunter2"  # noqa: S105 - must not be printed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("redis://host", One("redis://host", {"host": "host"})),
        (
            "redis://user:p%40ss@[::1]:6380/15?socket_timeout=2",
            One(
                "redis://[::1]:6380/15",
                {
                    "username": "user",
                    "password": "p@ss",
                    "host": "::1",
                    "port": 6380,
                    "db": 15,
                    "socket_timeout": 2.0,
                },
            ),
        ),
        (
            "rediss://host/0?ssl_cert_reqs=none",
            One(
                "rediss://host/0",
                {"host": "host", "db": 0, "ssl_cert_reqs": "none", "connection_class": SSLConnection},
            ),
        ),
        (
            "unix://:pass@/run/redis.sock?db=2",
            One(
                "unix:///run/redis.sock",
                {
                    "password": "pass",
                    "path": "/run/redis.sock",
                    "db": 2,
                    "connection_class": UnixDomainSocketConnection,
                },
            ),
        ),
        (
            "redis+sentinel://one,two:5000,[::1]:5001/games-1",
            Sentinel(
                "redis+sentinel://one,two:5000,[::1]:5001/games-1",
                (Address("one", 26379), Address("two", 5000), Address("::1", 5001)),
                "games-1",
                {},
                {},
            ),
        ),
        (
            "redis+sentinel://user:pass@one/games/3?sentinel_username=watch&sentinel_password=dog&socket_timeout=2",
            Sentinel(
                "redis+sentinel://one/games/3",
                (Address("one", 26379),),
                "games",
                {"username": "user", "password": "pass", "db": 3, "socket_timeout": 2.0},
                {"username": "watch", "password": "dog", "socket_timeout": 2.0},
            ),
        ),
        (
            "rediss+sentinel://one/games?ssl_cert_reqs=none",
            Sentinel(
                "rediss+sentinel://one/games",
                (Address("one", 26379),),
                "games",
                {"connection_class": SSLConnection, "ssl_cert_reqs": "none"},
                {"connection_class": SSLConnection, "ssl_cert_reqs": "none"},
            ),
        ),
        (
            "redis+cluster://user:pass@one:7000,two",
            Cluster(
                "redis+cluster://one:7000,two",
                (Address("one", 7000), Address("two", 6379)),
                {"username": "user", "password": "pass"},
            ),
        ),
        (
            "rediss+cluster://[fe80::1]/?ssl_ca_certs=/ca.pem&max_connections=8",
            Cluster(
                "rediss+cluster://[fe80::1]/",
                (Address("fe80::1", 6379),),
                {"connection_class": SSLConnection, "ssl_ca_certs": "/ca.pem", "max_connections": 8},
            ),
        ),
    ],
)
def test_each_form_is_parsed(text: str, expected: One | Sentinel | Cluster) -> None:
    parsed = parse_redis_url(text)
    assert parsed == expected
    for password in ("p@ss", "pass", "dog"):
        assert password not in repr(parsed)


def test_options_make_a_connection_pool() -> None:
    cluster = parse_redis_url("rediss+cluster://:pass@one:7000/?ssl_cert_reqs=none&max_connections=8")
    assert isinstance(cluster, Cluster)
    pool = BlockingConnectionPool(**cluster.nodes[0]._asdict(), **cluster.options)
    connection = pool.make_connection()  # type: ignore[no-untyped-call]
    assert isinstance(connection, SSLConnection)
    assert (connection.host, connection.port, pool.max_connections) == ("one", 7000, 8)


@pytest.mark.parametrize(
    ("address", "text"), [(Address("host", 1), "host:1"), (Address("::1", 2), "[::1]:2"), (Address("", 3), ":3")]
)
def test_an_address_is_shown_as_in_a_url(address: Address, text: str) -> None:
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (f"redis://:{PASSWORD}@host/games", ONE_FORM),
        (f"redis://host/0?sentinel_password={PASSWORD}", ONE_FORM),
        (f"redis://:12#{PASSWORD}@host:6379/0", ONE_FORM),
        (f"redis://:{PASSWORD}@[::1/0", ONE_FORM),
        (f"sentinel://:{PASSWORD}@host/games", f"{ONE_FORM}, {SENTINEL_FORM}, {CLUSTER_FORM}"),
        (f"redis+sentinel://:{PASSWORD}@host", SENTINEL_FORM),
        (f"redis+sentinel://:{PASSWORD}@host/", SENTINEL_FORM),
        (f"redis+sentinel://:{PASSWORD}@/games", SENTINEL_FORM),
        (f"redis+sentinel://:{PASSWORD}@host/games/three", SENTINEL_FORM),
        (f"redis+sentinel://:{PASSWORD}@host/games/3/4", SENTINEL_FORM),
        (f"redis+sentinel://:{PASSWORD}@host,/games", SENTINEL_FORM),
        (f"redis+sentinel://:{PASSWORD}@host:0/games", SENTINEL_FORM),
        (f"redis+sentinel://:{PASSWORD}@host:65536/games", SENTINEL_FORM),
        (f"redis+sentinel://:{PASSWORD}@host:port/games", SENTINEL_FORM),
        (f"redis+sentinel://host/games?sentinel_pasword={PASSWORD}", SENTINEL_FORM),
        (f"redis+sentinel://host/games?ssl_cert_reqs=none&password={PASSWORD}", SENTINEL_FORM),
        (f"redis+sentinel://:12/{PASSWORD}@host/games", SENTINEL_FORM),
        (f"redis+cluster://:{PASSWORD}@", CLUSTER_FORM),
        (f"redis+cluster://:{PASSWORD}@host:7000,,host", CLUSTER_FORM),
        (f"redis+cluster://:{PASSWORD}@host/1", CLUSTER_FORM),
        (f"redis+cluster://host/?db=1&password={PASSWORD}", CLUSTER_FORM),
        (f"redis+cluster://host/?nodes=2&password={PASSWORD}", CLUSTER_FORM),
    ],
)
def test_an_error_names_the_expected_form_and_not_the_password(text: str, form: str) -> None:
    with pytest.raises(RedisUrlError, match="expected") as error:
        parse_redis_url(text)
    assert form in str(error.value)
    assert PASSWORD not in str(error.value)
