"""What a user did that the program cannot go on with."""


class UserError(Exception):
    """Bad input, told in one line that names the file or key and the remedy.

    The command line prints the message alone and exits with status 2; any other
    exception is a bug and keeps its traceback.
    """


class RunStopped(Exception):
    """A run that ended before its last step, on request and with a checkpoint: no error.

    Attributes:
        status: the exit status of the command line.
    """

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status
