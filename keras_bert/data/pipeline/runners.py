"""Runs Apache Beam pipelines: which runner, with which options, and how failures are reported."""

from __future__ import annotations

import difflib
import io
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keras_bert.core.errors import UserError
from keras_bert.core.imports import import_extra
from keras_bert.core.runtime import all_cores, stderr_withheld

if TYPE_CHECKING:
    from apache_beam import Pipeline
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.runner import PipelineRunner

RUNNERS = {
    # Not Beam's own choice, DirectRunner, which first tries to download a program from GitHub.
    "direct": "FnApiRunner",
    "dataflow": "DataflowRunner",
    "spark": "SparkRunner",
    "flink": "FlinkRunner",
}
# Their job servers have options that Beam's Python side does not know.
_WITH_OPTIONS_OF_THEIR_OWN = ("spark", "flink")
_USER_ERROR = re.compile(r"\bUserError: (.*)")
_STAGE = re.compile(r" \[while running .*")


@dataclass(frozen=True)
class Runner:
    """A runner with its options.

    Args:
        name: one of `RUNNERS`.
        flags: Beam's pipeline options, such as `--project=NAME`.
        workers: processes of the direct runner; 0 for one per core.

    Raises:
        UserError: Beam is not installed, or does not know an option.
    """

    name: str
    flags: Sequence[str] = ()
    workers: int = 0

    def __post_init__(self) -> None:
        with _silenced():  # Beam warns about optional parts that are not installed.
            import_extra("apache_beam", f"--runner {self.name}")
        if self.workers and self.name != "direct":
            raise UserError(
                f"--workers {self.workers}: counts the processes of --runner direct. Received: --runner {self.name}. "
                "Give the runner's own option after --, such as --max_num_workers for dataflow."
            )
        self._check_flags()

    def options(self) -> PipelineOptions:
        """Beam's pipeline options."""
        from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions

        options = PipelineOptions(list(self.flags), runner=RUNNERS[self.name])
        if self.name == "direct":
            direct = options.view_as(DirectOptions)
            workers = self.workers or all_cores()
            if workers > 1 and not any("direct_" in flag for flag in self.flags):
                direct.direct_num_workers, direct.direct_running_mode = workers, "multi_processing"
        return options

    def beam_runner(self) -> PipelineRunner:
        """Beam's runner. Raises `UserError` if a part of Beam is missing for it."""
        from apache_beam.runners import create_runner

        try:
            return create_runner(RUNNERS[self.name])
        except ImportError as error:
            raise UserError(
                f"--runner {self.name}: needs another part of Apache Beam ({error}). "
                "Install it with: pip install 'apache-beam[gcp]'"
            ) from None

    @contextmanager
    def pipeline(self, shown: AbstractContextManager[None] | None = None) -> Iterator[Pipeline]:
        """Yields a pipeline for the block to build, then runs it to its end.

        Args:
            shown: a context that shows the progress of a run on this machine; other runners do so themselves.

        Raises:
            UserError: a worker raised one, or a disk or a store failed.
        """
        import apache_beam as beam

        options = self.options()
        pipeline = beam.Pipeline(self.beam_runner(), options)
        yield pipeline
        with self.worker_environment(), _user_errors_of_workers():
            if self.name == "direct":
                with shown or nullcontext():
                    _run_quietly(pipeline)
            else:
                logging.basicConfig(level=logging.INFO)  # The link to the job, and its progress.
                pipeline.run().wait_until_finish()

    @contextmanager
    def worker_environment(self) -> Iterator[None]:
        """Lets worker processes started in the block find this package from any folder, and use no GPU."""
        here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
        changed = {
            "PYTHONPATH": os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")])),
            "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
            "CUDA_VISIBLE_DEVICES": "-1",
        }
        before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def _check_flags(self) -> None:
        from apache_beam.options.pipeline_options import PipelineOptions

        for before, flag in zip(["", *self.flags], self.flags):
            is_value = before.startswith("--") and "=" not in before
            if not flag.startswith("--") and not is_value:
                raise UserError(f"{flag}: is no option of Apache Beam. Give options as --NAME=VALUE.")
            if flag.partition("=")[0] == "--runner":
                raise UserError(f"{flag}: stands among Beam's options. Give --runner before the --.")
        usage = io.StringIO()
        try:
            with redirect_stderr(usage), _silenced():
                options = PipelineOptions(list(self.flags))
                known = options.get_all_options()
                given = options.get_all_options(retain_unknown_options=True)
        except SystemExit:
            reason = usage.getvalue().strip().rpartition("error: ")[2]
            raise UserError(f"An option of Apache Beam: {reason}. Give another value.") from None
        unknown = sorted(set(given) - set(known))
        if unknown and self.name not in _WITH_OPTIONS_OF_THEIR_OWN:
            nearest = difflib.get_close_matches(unknown[0], known, 1)
            hint = f"Did you mean --{nearest[0]}?" if nearest else "See the pipeline options of your runner."
            raise UserError(f"--{unknown[0]}: is no option of Apache Beam. {hint}")


def spread(pipeline: Pipeline, pieces: Sequence[Any]) -> Any:
    """A collection of the pieces, which workers take one by one."""
    import apache_beam as beam

    return pipeline | "Pieces" >> beam.Create(pieces) | "Spread pieces" >> beam.Reshuffle()


def stage(label: str, function: Callable[..., Any], *inputs: Any) -> Any:
    """A step of a pipeline, in which workers call a function with each element.

    Args:
        function: (element, *inputs) -> an iterable of results, or None. A failure of a disk or a store becomes a
            `UserError` with the path.
    """
    import apache_beam as beam

    # Annotated as Any, because Beam would choose the encoding of elements by the annotations of `function`.
    def in_worker(*arguments: Any) -> Iterator[Any]:
        try:
            yield from function(*arguments) or ()
        except OSError as error:
            if error.filename is None:
                raise
            raise UserError(f"{error.filename}: {error.strerror or error}.") from error

    return label >> beam.FlatMap(in_worker, *inputs)


def _run_quietly(pipeline: Pipeline) -> None:
    """Runs a pipeline on this machine without the logs of its processes.

    They log every step and, before raising it, each failure in every layer with a traceback.
    """
    failure = None
    with stderr_withheld(), _silenced():
        try:
            pipeline.run().wait_until_finish()
        except BaseException as error:
            failure = error
    if failure is not None:
        raise failure


@contextmanager
def _user_errors_of_workers() -> Iterator[None]:
    """Turns Beam's exceptions into the `UserError` of a worker that caused them, if one did.

    Runners pass on exceptions of other processes as text within tracebacks.
    """
    try:
        yield
    except Exception as error:
        found = _USER_ERROR.findall(f"{type(error).__name__}: {error}")
        if not found:
            raise
        raise UserError(_STAGE.sub("", found[-1])) from None


@contextmanager
def _silenced() -> Iterator[None]:
    """Suppresses all logging in the block."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
