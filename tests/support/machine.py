"""How the state machines of ``tests/model`` are run."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def run_machine(machine: type[RuleBasedStateMachine], *, examples: int, steps: int = 40) -> None:
    """``steps`` commands of any kind, ``examples`` times; the same ones in every run.

    A failure is told with all its steps: to find the few that matter, add ``Phase.shrink`` and wait some minutes.
    """
    run_state_machine_as_test(  # type: ignore[no-untyped-call]  # hypothesis has no type for it
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            print_blob=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
