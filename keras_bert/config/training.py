"""Settings common to all training: the optimizer, the devices, the length of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, get_args

from keras_bert.core.errors import UserError
from keras_bert.core.settings import (
    BelowOne,
    Bounds,
    Checked,
    NotNegative,
    OneOf,
    Positive,
    PositiveShare,
    Seed,
    require,
    require_multiple,
)

_SHARED = ("__init__", "base")
Logger = Literal["tensorboard", "wandb", "mlflow"]
# An optimizer is a file beside optimizers/base.py, named as in `optimizer.name`. They are listed without importing
# them, because they import TensorFlow.
OPTIMIZERS = tuple(
    sorted(path.stem for path in Path(__file__).parents[1].glob("training/optimizers/*.py") if path.stem not in _SHARED)
)
Schedule = Literal["linear", "cosine", "polynomial", "constant"]

# Settings that only one algorithm or schedule uses, and settings that one does not use: (what chooses it, its name).
_USED_BY = {
    "bias_correction": ("name", "lamb"),
    "relative_step": ("name", "adafactor"),
    "first_moment": ("name", "adafactor"),
    "polynomial_power": ("schedule", "polynomial"),
}
_UNUSED_BY = {
    "beta_1": ("name", "adafactor"),
    "beta_2": ("name", "adafactor"),
    "epsilon": ("name", "adafactor"),
    "decay_share": ("schedule", "constant"),
}


@dataclass
class OptimizerConfig(Checked):
    """Adam with decoupled weight decay, linear warm-up and, by default, linear decay (paper, appendix A.2).

    Attributes:
        name: the algorithm.
        learning_rate: peak learning rate, reached after the warm-up.
        warmup_steps: steps of linear warm-up; 0 for `warmup_share`.
        warmup_share: share of the run's steps, or of its time, that is warm-up.
        schedule: how the learning rate falls after the warm-up.
        polynomial_power: exponent of the schedule `polynomial`.
        decay_share: last share of the steps after the warm-up, over which the learning rate decays; until then it stays
            at its peak.
        weight_decay: decoupled decay of the weights, except for biases and LayerNorm.
        beta_1: decay of the moving average of the gradients or, for `adafactor`, of its updates.
        beta_2: decay of the moving average of the squared gradients.
        epsilon: added to the root of the average of the squared gradients.
        clip_norm: gradients are clipped to this global norm, after their reduction over replicas.
        bias_correction: whether `lamb` corrects the bias of both averages; ALBERT's does not.
        relative_step: whether `adafactor` scales its step by the size of the weights.
        first_moment: whether `adafactor` steps by a moving average of its updates, with the decay `beta_1`.
        layer_decay: multiplies the learning rate once for each block further from the heads.
        rates: factors on the learning rate of variables, by patterns of their names: `{pattern: factor}`.
        weight_average: decay of a moving average of the weights, which is validated and exported instead of them; 0 for
            none.
    """

    name: Annotated[str, OneOf(lambda: OPTIMIZERS)] = "adamw"
    learning_rate: Positive[float] = 1e-4
    warmup_steps: NotNegative[int] = 10_000
    warmup_share: BelowOne = 0.0
    schedule: Schedule = "linear"
    polynomial_power: Positive[float] = 2.0
    decay_share: PositiveShare = 1.0
    weight_decay: NotNegative[float] = 0.01
    beta_1: BelowOne = 0.9
    beta_2: BelowOne = 0.999
    epsilon: Positive[float] = 1e-6
    clip_norm: Positive[float] = 1.0
    bias_correction: bool = True
    relative_step: bool = False
    first_moment: bool = False
    layer_decay: Annotated[float, Bounds("a factor above 0 and at most 1", max=1, min_open=True)] = 1.0
    rates: dict[str, NotNegative[float]] = field(default_factory=dict)
    weight_average: BelowOne = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_settings_in_use()

    def _require_settings_in_use(self) -> None:
        """Refuses a change of a setting that the chosen algorithm or schedule does not use."""
        for key, (choice, user) in _USED_BY.items():
            if getattr(self, choice) != user:
                self._require_default(key, choice, f"; only {user} uses it")
        for key, (choice, other) in _UNUSED_BY.items():
            if getattr(self, choice) == other and not (key == "beta_1" and self.first_moment):
                unless = " without optimizer.first_moment" if key == "beta_1" else ""
                self._require_default(key, choice, f", which does not use it{unless}")
        is_used = not self.warmup_steps or self.warmup_share == type(self).warmup_share
        require(is_used, "warmup_share", f"optimizer.warmup_steps 0, not {self.warmup_steps}", self.warmup_share)

    def _require_default(self, key: str, choice: str, why: str) -> None:
        default = getattr(type(self), key)
        needed = f"its default ({default}) with optimizer.{choice} {getattr(self, choice)}{why}"
        require(getattr(self, key) == default, key, needed, getattr(self, key))


@dataclass
class RunConfig(Checked):
    """What every run has: its devices, and how often it logs and saves, in optimizer steps.

    After a loss, gradient or weight that is not finite, or a loss outside `loss_band` (see `LossBand`), the run goes
    back to the last good checkpoint and leaves out the batches since then, at most `rollbacks` times in all; the next
    time it stops with an error.

    Attributes:
        minutes: total training time in minutes, over all starts of the run, instead of a number of steps; the learning
            rate decays over that time. 0 for no such limit.
        seed: seed for weights, masks, pairs, order and dropout.
        strategy: which devices train: `one`; `mirrored`, several of this machine; `multiworker`, those of all processes
            of the run (TF_CONFIG, SLURM); `tpu`; or `auto`, all that are found.
        devices: devices of this machine to use, such as GPU:0; several share each batch; by default, all.
        tpu: name or address of the TPU to train on, with the strategy `tpu`; `local` is the TPU of this machine.
        precision: what the network computes in; variables are float32. In `float16`, for devices without bfloat16, the
            loss is scaled. `auto` is bfloat16 on devices that multiply it (on CPUs only without XLA), and float32 on
            others; a run that has begun keeps its precision.
        jit_compile: compile the step with XLA; `auto` times a few steps at the start and compiles if the run is long
            enough to gain from it.
        accumulation: slices of each replica's part of a batch, computed one after the other, for batches that do not
            fit in memory; the results stay the same. `auto` estimates the fewest that fit, and the run keeps that
            number.
        recompute_every: every n-th encoder block keeps only its input and is computed again in the backward pass, which
            saves memory and costs time; 0 for none, 1 for all.
        steps_per_loop: steps in one call of the compiled function, so that a fast accelerator does not wait for Python
            between them; the results stay the same, and intervals such as `log_every` must be multiples of it.
        log_every: steps between log lines; 0 for one every 100 steps, and at least 20 a run.
        log_to: where to log the figures, besides metrics.jsonl.
        checkpoint_every: steps between checkpoints.
        checkpoint_minutes: at a log line, also save a checkpoint if the last one is this many minutes old; 0 to save by
            steps alone.
        keep_checkpoints: how many of the newest checkpoints are kept, besides the best by validation and the one to
            which the run would go back after a divergence.
        keep_every: steps between checkpoints that are kept for good; 0 for none.
        max_minutes: save a checkpoint and stop this many minutes after the start of the command; the same command
            resumes. 0 for no such limit.
        gradient_norms: log the norm of the gradient of each part of the model.
        rollbacks: how often the run may go back to a checkpoint after a divergence.
        loss_band: how many spreads a logged loss may be above the median of the last 50
            (docs/pretraining.md#divergence); 0 for no such check.
    """

    minutes: NotNegative[float] = 0.0
    seed: Seed = 1
    strategy: Literal["auto", "one", "mirrored", "multiworker", "tpu"] = "auto"
    devices: list[str] = field(default_factory=list)
    tpu: str = "local"
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "float32"
    jit_compile: bool | Literal["auto"] = False
    accumulation: Positive[int] | Literal["auto"] = "auto"
    recompute_every: NotNegative[int] = 0
    steps_per_loop: Positive[int] = 1
    log_every: NotNegative[int] = 0
    log_to: list[Logger] = field(default_factory=lambda: ["tensorboard"])
    checkpoint_every: Positive[int] = 1_000
    checkpoint_minutes: NotNegative[float] = 10.0
    keep_checkpoints: Positive[int] = 3
    keep_every: NotNegative[int] = 0
    max_minutes: NotNegative[float] = 0.0
    gradient_norms: bool = False
    rollbacks: NotNegative[int] = 3
    loss_band: NotNegative[float] = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_multiple(self, "steps_per_loop", "log_every", "checkpoint_every", "keep_every")
        once = len(set(self.log_to)) == len(self.log_to)
        require(once, "log_to", f"some of {', '.join(get_args(Logger))}, each once", self.log_to)

    @property
    def slices(self) -> int:
        """`accumulation` as a number; 1 while it is still `auto`."""
        return self.accumulation if isinstance(self.accumulation, int) else 1


@dataclass
class TrainingConfig(RunConfig):
    """The length of a pretraining run and how often it validates, in steps; see `RunConfig` for the rest.

    Attributes:
        steps: total training steps. A resumed run may be given more.
        evaluate_every: steps between validations.
        evaluation_examples: rows of held-out text to validate on.
        profile_at: write a profiler trace of a few steps after this one; 0 for none.
        parallel_slices: parts of a batch that one CPU computes side by side, each on its share of the cores, which is
            faster for small models; the results stay the same.
    """

    steps: Positive[int] = 1_000_000
    evaluate_every: Positive[int] = 10_000
    evaluation_examples: Positive[int] = 2_048
    profile_at: NotNegative[int] = 0
    parallel_slices: Positive[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_multiple(self, "steps_per_loop", "evaluate_every", "profile_at")


def require_warmup(optimizer: OptimizerConfig, training: RunConfig, steps: int, first_phase: int | None = None) -> None:
    """Raises `UserError` if a run of `steps`, or its first phase, would end before the warm-up does.

    Runs limited by time are not checked: their number of steps is not known.
    """
    most = steps - 1 if first_phase is None else min(first_phase, steps - 1)
    if optimizer.warmup_steps > most and not training.minutes:
        where = "the run" if most == steps - 1 else f"the first phase ({first_phase:,} steps)"
        raise UserError(
            f"optimizer.warmup_steps: needs to end before {where} does, of {steps:,} steps. "
            f"Received: {optimizer.warmup_steps:,}. Set optimizer.warmup_steps={most // 10}, or train longer."
        )


def phase_ends(steps: int, shares: Sequence[float]) -> list[int]:
    """The number of the first step after each phase, in a run of `steps` divided by `shares`, which sum to about 1."""
    return [*(round(steps * sum(shares[: index + 1])) for index in range(len(shares) - 1)), steps]
