"""The memory that a process itself holds, and how it grows."""

import numpy as np
import psutil

SECONDS_AN_HOUR = 3600.0


def own_memory(pid):
    """Megabytes of a process without the files that it maps, whose pages the system drops and reloads."""
    memory = psutil.Process(pid).memory_info()
    return (memory.rss - getattr(memory, "shared", 0)) / 1e6


def slope(samples):
    """Megabytes per hour, by least squares over [(seconds, megabytes)]; nan for fewer than three samples."""
    if len(samples) < 3:
        return float("nan")
    seconds, megabytes = np.array(samples).T
    return SECONDS_AN_HOUR * np.polyfit(seconds - seconds[0], megabytes, 1)[0]
