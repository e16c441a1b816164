"""The operations of a traced function."""


def all_operations(graph):
    """Those of a graph and of the functions that it calls."""
    yield from graph.get_operations()
    for function in graph._functions.values():
        yield from function.graph.get_operations() if hasattr(function, "graph") else ()
