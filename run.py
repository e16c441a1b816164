"""Entry point of the command line: `python run.py --help`."""

from keras_bert.cli import main

if __name__ == "__main__":
    main()
