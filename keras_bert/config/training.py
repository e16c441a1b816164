"""Settings common to all training: the optimizer, the devices, the length of a run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from keras_bert.core.errors import UserError
from keras_bert.core.settings import require, require_multiple, require_positive, require_seed

STRATEGIES = ("auto", "one", "mirrored", "multiworker", "tpu")
OPTIMIZERS = ("adamw", "lamb", "adafactor")
SCHEDULES = ("linear", "cosine", "polynomial", "constant")
PRECISIONS = ("float32", "bfloat16", "float16")

# The settings that not every algorithm or schedule uses: the setting that chooses it, and what uses them.
_USERS = {
    "bias_correction": ("name", ("lamb",)),
    "relative_step": ("name", ("adafactor",)),
    "first_moment": ("name", ("adafactor",)),
    "beta_1": ("name", ("adamw", "lamb", "first_moment")),
    "beta_2": ("name", ("adamw", "lamb")),
    "epsilon": ("name", ("adamw", "lamb")),
    "polynomial_power": ("schedule", ("polynomial",)),
    "decay_share": ("schedule", ("linear", "cosine", "polynomial")),
}


@dataclass
class OptimizerConfig:
    """Adam with decoupled weight decay, linear warm-up and, by default, linear decay (paper, appendix A.2).

    Warm-up takes `warmup_steps` or, if that is 0, `warmup_share` of the run: of its steps, or of its time. The learning
    rate decays over the last `decay_share` of the steps after the warm-up and stays at its peak until
    then. `clip_norm` limits the global norm of the gradients, after their reduction over replicas.

    `name` chooses the algorithm: `adamw`; `lamb`, with `bias_correction` false as in ALBERT; or `adafactor`, which
    scales its step by the size of the weights if `relative_step` is true and keeps a first moment, with `beta_1`, if
    `first_moment` is. `layer_decay` multiplies the learning rate for each block further from the heads, and `rates`
    (`{pattern: factor}`) for variables by their names. `weight_average` larger than 0 keeps a moving average of the
    weights with this decay, which is what is validated and exported.
    """

    name: str = "adamw"
    learning_rate: float = 1e-4
    warmup_steps: int = 10_000
    warmup_share: float = 0.0
    schedule: str = "linear"
    polynomial_power: float = 2.0
    decay_share: float = 1.0
    weight_decay: float = 0.01
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    clip_norm: float = 1.0
    bias_correction: bool = True
    relative_step: bool = False
    first_moment: bool = False
    layer_decay: float = 1.0
    rates: dict = field(default_factory=dict)  # {pattern: number}; `settings` reads no narrower type.
    weight_average: float = 0.0

    def __post_init__(self) -> None:
        require(self.name in OPTIMIZERS, "name", f"one of {', '.join(OPTIMIZERS)}", self.name)
        require_positive(self, "learning_rate", "polynomial_power", "epsilon", "clip_norm")
        require(self.schedule in SCHEDULES, "schedule", f"one of {', '.join(SCHEDULES)}", self.schedule)
        require(0.0 < self.decay_share <= 1.0, "decay_share", "a share above 0 and at most 1", self.decay_share)
        require(self.warmup_steps >= 0, "warmup_steps", "0 or more", self.warmup_steps)
        require(self.weight_decay >= 0, "weight_decay", "0 or more", self.weight_decay)
        for key in ("beta_1", "beta_2", "weight_average", "warmup_share"):
            require(0.0 <= getattr(self, key) < 1.0, key, "a value of at least 0 and less than 1", getattr(self, key))
        require(0.0 < self.layer_decay <= 1.0, "layer_decay", "a factor above 0 and at most 1", self.layer_decay)
        for pattern, factor in self.rates.items():
            require(isinstance(pattern, str), "rates", "patterns that are text", pattern)
            is_number = isinstance(factor, (int, float)) and not isinstance(factor, bool)
            require(is_number and 0.0 <= factor < math.inf, f"rates.{pattern}", "a number, 0 or more", factor)
        self._require_settings_in_use()

    def _require_settings_in_use(self) -> None:
        """Refuses a change of a setting that the chosen algorithm or schedule does not use."""
        for key, (choice, users) in _USERS.items():
            value, default, chosen = getattr(self, key), getattr(type(self), key), getattr(self, choice)
            is_used = chosen in users or ("first_moment" in users and self.first_moment)
            needed = f"its default ({default}) with optimizer.{choice} {chosen}; {_listed(users)} it"
            require(is_used or value == default, key, needed, value)
        is_used = not self.warmup_steps or self.warmup_share == type(self).warmup_share
        require(is_used, "warmup_share", f"optimizer.warmup_steps 0, not {self.warmup_steps}", self.warmup_share)


def _listed(users: Sequence[str]) -> str:
    *others, last = users
    return f"only {', '.join(others)} and {last} use" if others else f"only {last} uses"


@dataclass
class RunConfig:
    """What every run has: its devices, and how often it logs and saves, in optimizer steps.

    `jit_compile` compiles the step with XLA; `auto` times a few steps at the start of a run and compiles if the run is
    long enough to gain from it. `precision` is what the network computes in; variables are float32. In `float16`, for
    devices without bfloat16, the loss is scaled (`training.loss_scale`).

    `accumulation` splits each replica's part of a batch into that many slices, computed one after the other, for
    batches that do not fit in memory; the results stay the same. With `recompute_every: n`, every n-th encoder block
    keeps only its input and is computed again in the backward pass, which saves memory and costs time (0: none; 1: all
    blocks). `steps_per_loop` runs that many steps in one call of the compiled function, which fetches the batches
    itself, so that a fast accelerator does not wait for Python between them; the results stay the same, and intervals
    such as `log_every` must be multiples of it. A checkpoint is written every `checkpoint_every` steps, every
    `keep_every` steps (0: never) and, at the next log line, when the last one is `checkpoint_minutes` old (0: by steps
    alone); the newest `keep_checkpoints`, the best by validation and those at multiples of `keep_every` are kept.
    `max_minutes` stops this process after that time, counted from the start of the command, with a checkpoint; 0 is no
    limit. `minutes` larger than 0 limits the run by time, summed over all its starts, and the learning rate decays over
    that time. `gradient_norms` logs the norm of the gradient of each part of the model.

    After a loss, gradient or weight that is not finite, or a logged loss more than `loss_band` spreads above the median
    of the last 50 (0: no such check; see `LossBand`), the run goes back to the last good checkpoint and leaves out the
    batches since then, up to `rollbacks` times in all; then it stops with an error.
    """

    minutes: float = 0.0
    seed: int = 1
    strategy: str = "auto"
    devices: list[str] = field(default_factory=list)
    tpu: str = "local"
    precision: str = "float32"
    jit_compile: bool | str = False
    accumulation: int = 1
    recompute_every: int = 0
    steps_per_loop: int = 1
    log_every: int = 100
    checkpoint_every: int = 1_000
    checkpoint_minutes: float = 10.0
    keep_checkpoints: int = 3
    keep_every: int = 0
    max_minutes: float = 0.0
    gradient_norms: bool = False
    rollbacks: int = 3
    loss_band: float = 10.0

    def __post_init__(self) -> None:
        require_positive(self, "accumulation", "steps_per_loop", "log_every", "checkpoint_every", "keep_checkpoints")
        for key in ("minutes", "recompute_every", "checkpoint_minutes", "keep_every", "max_minutes"):
            require(getattr(self, key) >= 0, key, "0 or more", getattr(self, key))
        require_seed(self.seed)
        for key in ("rollbacks", "loss_band"):
            require(getattr(self, key) >= 0, key, "0 or more", getattr(self, key))
        require_multiple(self, "steps_per_loop", "log_every", "checkpoint_every", "keep_every")
        require(self.strategy in STRATEGIES, "strategy", f"one of {', '.join(STRATEGIES)}", self.strategy)
        needed = "true, false or auto"
        require(self.jit_compile in (True, False, "auto"), "jit_compile", needed, self.jit_compile)
        require(self.precision in PRECISIONS, "precision", f"one of {', '.join(PRECISIONS)}", self.precision)


@dataclass
class TrainingConfig(RunConfig):
    """The length of a pretraining run and how often it validates. Counts are steps unless the name says otherwise.

    In a run limited by `minutes`, the phases' shares are shares of that time. `profile_at` larger than 0 writes a
    profiler trace of a few steps after that step.
    """

    steps: int = 1_000_000
    evaluate_every: int = 10_000
    evaluation_examples: int = 2_048
    profile_at: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "steps", "evaluate_every", "evaluation_examples")
        require(self.profile_at >= 0, "profile_at", "0 or more", self.profile_at)
        require_multiple(self, "steps_per_loop", "evaluate_every", "profile_at")


def require_warmup(optimizer: OptimizerConfig, training: RunConfig, steps: int, first_phase: int | None = None) -> None:
    """Raises `UserError` if a run of so many steps would be over, or in its second phase, before the warm-up is.

    Runs limited by time are not checked: how many steps they have is not known.
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
