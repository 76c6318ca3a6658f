"""The outcome of an execution of parked transactions, as far as it still holds."""

from thalweg.engine_client.client import EngineClient
from thalweg.engine_client.parked_documents import ErrorExecution, ExecutionFailure, ParkedErrors
from thalweg.kernel.lifecycle import ExecutionState

ROOTS_READ = 1000


async def still_true(
    client: EngineClient, stream_id: str, destination_id: str, parked: ParkedErrors
) -> ErrorExecution | None:
    """The last execution without the failures that have left the queue since: a copy of their tables has settled them,
    or somebody has discarded them. None: nothing of its failures is left. Raises EngineFailure."""
    execution = parked.execution
    if execution is None or execution.state != ExecutionState.FAILED:
        return execution
    if not parked.total:
        return None
    if not execution.failures:
        return execution
    first = min(failure.error_id for failure in execution.failures)
    roots = await client.errors(stream_id, destination_id, first - 1, ROOTS_READ, roots_only=True)
    left = [failure for failure in execution.failures if _may_be_among(roots, failure)]
    gone = len(execution.failures) - len(left)
    failed_again = None if execution.failed_again is None else execution.failed_again - gone
    if not left and not failed_again:
        return None
    error = execution.error if not gone or not left else left[0].error
    return execution.model_copy(update={"failures": left, "failed_again": failed_again, "error": error})


def _may_be_among(roots: ParkedErrors, failure: ExecutionFailure) -> bool:
    """A transaction that failed by itself waits behind no other. Beyond the end of the page nothing is known."""
    beyond = roots.next_after is not None and failure.error_id > roots.next_after
    return beyond or any(error.id == failure.error_id for error in roots.errors)
