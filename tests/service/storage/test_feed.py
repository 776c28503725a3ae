"""The feed of notifications: it has subscribed exactly the channels of watched games, whoever comes and goes."""

import asyncio
from contextlib import AsyncExitStack

import redis.asyncio as redis

from support.harness import redis_store


async def test_watchers_who_leave_and_come_back_are_notified_again(empty_redis_url: str) -> None:
    store = redis_store(empty_redis_url)
    client = redis.Redis.from_url(empty_redis_url)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.aclose)
        stack.push_async_callback(store.close)
        for number in range(20):
            subscription = await stack.enter_async_context(store.streams.subscribe(f"game-{number}"))
            await asyncio.wait_for(subscription.wait(), 10)
        async with store.streams.subscribe("brief") as brief:
            await asyncio.wait_for(brief.wait(), 10)
            assert len(await client.pubsub_channels()) == 21
        async with asyncio.timeout(10):
            while len(await client.pubsub_channels()) > 20:
                pass
        async with store.streams.subscribe("brief") as again:
            await asyncio.wait_for(again.wait(), 10)
            assert len(await client.pubsub_channels()) == 21
