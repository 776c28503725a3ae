"""Distinguishes the cancellation of a task from a CancelledError that something it awaits raises."""

import asyncio


def is_task_cancelled() -> bool:
    """Returns whether the current task was cancelled, and not just something that it awaited."""
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())
