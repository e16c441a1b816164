"""The command line's front door: `python run.py --help`."""

from keras_bert.cli import main

if __name__ == "__main__":
    main()
