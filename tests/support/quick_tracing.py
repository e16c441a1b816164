"""TensorFlow without what no test needs: tracing graphs in Python is half of a small test's time.

What graphs compute stays the same. Shares are of the time of a pretraining run of a few steps, unless noted otherwise.
"""

import contextlib
import functools
import sys
import types
import typing
from concurrent.futures import ThreadPoolExecutor


def quicken():
    """Changes the TensorFlow of this process."""
    import keras
    import tensorflow as tf
    from tensorflow.python.eager import context
    from tensorflow.python.framework import auto_control_deps, op_def_library, ops
    from tensorflow.python.framework.auto_control_deps import op_is_stateful
    from tensorflow.python.framework.func_graph import FuncGraph
    from tensorflow.python.ops import control_flow_util, gen_resource_variable_ops
    from tensorflow.python.util import tf_stack

    # TensorFlow records where in Python each operation of a graph was made: an eighth of the time of tracing. An error
    # still has the traceback of the call. TensorFlow reads the code of those frames later, without keeping it. Hence a
    # thread: it has no frame of a module that is being imported, whose code goes. The function replaced here is kept.
    extract_stack = tf_stack.extract_stack
    with ThreadPoolExecutor(1) as pool:
        nowhere = pool.submit(extract_stack).result()
    tf_stack.extract_stack = lambda stacklevel=1, kept=extract_stack: nowhere

    # A wrapper around every function removes TensorFlow's and Keras's own lines from that traceback: 3%.
    tf.debugging.disable_traceback_filtering()
    keras.config.disable_traceback_filtering()

    # For each operation it also enters the graph, which it is already in, and locks it against sessions: a tenth.
    enter = FuncGraph.as_default

    def enter_unless_entered(graph):
        is_entered = ops.get_default_graph() is graph and not context.executing_eagerly()
        return contextlib.nullcontext(graph) if is_entered else enter(graph)

    FuncGraph.as_default = enter_unless_entered
    ops.Graph._mutation_lock = lambda graph: contextlib.nullcontext()

    # Two of five operations are constants, and three of four constants are in their graph already: a sixth.
    make_constant = ops._create_graph_constant

    def make_constant_once(value, dtype, shape, *how, **options):
        graph = ops.get_default_graph()
        if not _is_plain(value) or graph._current_control_dependencies():
            return make_constant(value, dtype, shape, *how, **options)
        if not hasattr(graph, "plain_constants"):
            graph.plain_constants = {}
        key = repr((value, dtype, shape))
        if key not in graph.plain_constants:
            graph.plain_constants[key] = make_constant(value, dtype, shape, *how, **options)
        return graph.plain_constants[key]

    ops._create_graph_constant = make_constant_once

    # It checks what it made itself, and asks its C++ side for each operation's inputs: 5% of tracing.
    resource, always_ordered = tf.resource._type_enum, {"NoOp", "Switch", "Merge"}

    def unchecked(node_def, graph, inputs, control_inputs, original_op, op_def, **checked):
        node = ops._create_c_op(graph, node_def, inputs, control_inputs, op_def=op_def)
        operation = ops.Operation(node, ops.SymbolicTensor)
        operation._init(graph)
        operation._original_op, operation._inputs_val = original_op, tuple(inputs)
        operation._control_flow_post_processing(input_tensors=inputs)
        touches_variable = any(given.dtype._type_enum == resource for given in inputs)
        operation.needs_no_order = not (touches_variable or node_def.op in always_ordered or op_is_stateful(operation))
        return operation

    ops.Operation.from_node_def = unchecked

    # It lists the types that an argument may have, for an error that names them: 8% of tracing.
    satisfy_constraint = op_def_library._SatisfiesTypeConstraint

    def satisfy_or_tell(dtype, attribute, param_name):
        if dtype not in attribute.allowed_values.list.type:
            satisfy_constraint(dtype, attribute, param_name)

    op_def_library._SatisfiesTypeConstraint = satisfy_or_tell

    # Most operations have no side effect, but for each it works out an order among those that do: 4% of tracing.
    def is_skipped(operation):
        return getattr(operation, "needs_no_order", False) or control_flow_util.IsInWhileLoop(operation)

    auto_control_deps.control_flow_util = types.SimpleNamespace(IsInWhileLoop=is_skipped)

    # A variable's name gives it an operation of its own, for which a kernel is built and kept: 7%.
    make_handle = gen_resource_variable_ops.var_handle_op
    gen_resource_variable_ops.var_handle_op = lambda debug_name="", **options: make_handle(**options)

    # Python 3.11 collects the members of a protocol anew for each `isinstance`, which tracing calls often.
    if sys.version_info < (3, 12):
        typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)


def rewrite_graphs(on):
    """Whether TensorFlow's Grappler rewrites each graph before its first run: a fifth of a small test's time."""
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": not on})


def _is_plain(value):
    """Whether `repr` says all about it: Python's numbers, and lists of them."""
    return isinstance(value, int | float) or isinstance(value, list | tuple) and all(map(_is_plain, value))
