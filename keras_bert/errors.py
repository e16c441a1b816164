"""What a user did that the program cannot go on with."""


class UserError(Exception):
    """Bad input, told in one line that names the file or key and the remedy.

    The command line prints the message alone and exits with status 2; any other
    exception is a bug and keeps its traceback.
    """
