"""Entry point of the command line: `python run.py --help`."""

import os
import sys

# Under PYTHONSAFEPATH, Python does not look beside the script.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from keras_bert.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
