"""A reader is sent an answer in chunks; how slow it may be, and that others have their turn."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from starlette.types import Message

from service.pieces import CHUNK_BYTES, CHUNKS_A_TURN, Cut, Reader

PATIENCE = 10


def test_others_have_their_turn_after_some_chunks() -> None:
    """Even where the client takes all of them at once."""
    turns: list[int] = []

    async def send(message: Message) -> None:
        turns.append(0)

    async def other() -> None:
        while True:
            turns[-1] += 1
            await asyncio.sleep(0)

    async def run() -> None:
        turns.append(0)
        task = asyncio.create_task(other())
        await Reader(send, PATIENCE).take([b"1" * (3 * CHUNKS_A_TURN * CHUNK_BYTES)])
        task.cancel()

    asyncio.run(run())
    assert len(turns) == 1 + 3 * CHUNKS_A_TURN
    given = [at for at, count in enumerate(turns) if count and at and at < len(turns) - 1]
    assert given == [CHUNKS_A_TURN, 2 * CHUNKS_A_TURN]


def test_reader_has_more_time_the_more_it_has_taken() -> None:
    sent = 0

    async def send(message: Message) -> None:
        nonlocal sent
        await asyncio.sleep(0.02)
        sent += len(message["body"])

    async def run(size: int) -> None:
        await Reader(send, 0.05).take([b"1" * size] * 8, whole=True)

    asyncio.run(run(CHUNK_BYTES))
    assert sent == 8 * CHUNK_BYTES
    with pytest.raises(Cut):
        asyncio.run(slowly(send))


async def slowly(send: Callable[[Message], Awaitable[None]]) -> None:
    reader = Reader(send, 0.05)
    for _ in range(8):
        await reader.take([b"1"])
