"""The command line as a module: `python -m keras_bert --help`."""

from keras_bert.cli import main

if __name__ == "__main__":
    main()
