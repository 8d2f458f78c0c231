"""The baseline `jax` of `bench`: `jax.jit` of the exported function.

Torch traces the exported function, its gradient included (`make_fx`), into the core operations of ATen; a row per
operation translates them to jax.numpy, and XLA compiles the whole. Both sides thus run the same mathematics, and XLA
fuses it as it does a JAX user's `jax.jit(jax.grad(…))`. JAX is no dependency of presk: `pip install jax`.
"""

# JAX has no types here, and every row of the tables is a lambda over its arrays.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from presk_rel.diagnostics import Diagnostic, PreskError

if TYPE_CHECKING:
    from presk_rel.api.baselines import Setting

Op = Callable[..., Any]


def missing(text: str, help: str | None = None) -> PreskError:
    return PreskError([Diagnostic("E7106", text, None, help=help)], exit_status=3)


def jitted(setting: Setting) -> Callable[[], Any]:
    """A call of the compiled function at the setting's inputs, finished when it returns. E7106 where JAX is not
    installed, or the function does what no row translates."""
    try:
        jax: Any = import_module("jax")
    except ImportError as error:
        raise missing("the baseline jax needs JAX, which is not installed here", "pip install jax") from error
    jax.config.update("jax_enable_x64", True)
    graph, flat = traced(setting)
    rows = table(jax)
    unknown = sorted({_name(n) for n in graph.graph.nodes if n.op == "call_function"} - set(rows))
    if unknown:
        raise missing(f"the baseline jax has no translation of {', '.join(unknown)}")
    constants = {n.target: _array(jax, getattr(graph, n.target)) for n in graph.graph.nodes if n.op == "get_attr"}

    def function(*arguments: Any) -> Any:
        return interpreted(graph.graph.nodes, rows, constants, iter(arguments))

    arguments = [_array(jax, x) for x in flat]
    run = jax.jit(function)
    return lambda: jax.block_until_ready(run(*arguments))


def traced(setting: Setting) -> tuple[Any, list[Any]]:
    """The graph of the exported function and its flat tensors; other arguments are constants of it."""
    torch: Any = import_module("torch")
    pytree: Any = import_module("torch.utils._pytree")
    make_fx: Any = import_module("torch.fx.experimental.proxy_tensor").make_fx
    leaves, form = pytree.tree_flatten(setting.functional())
    tensors = [x for x in leaves if isinstance(x, torch.Tensor)]

    def function(*given: Any) -> Any:
        rest = iter(given)
        whole = [next(rest) if isinstance(x, torch.Tensor) else x for x in leaves]
        values = pytree.tree_unflatten(whole, form)
        return tuple(pytree.tree_flatten(setting.function(*setting.arguments(values), **setting.keywords))[0])

    decompositions = import_module("torch._decomp").core_aten_decompositions()
    graph = make_fx(function, decomposition_table=decompositions)(*tensors)
    graph.graph.eliminate_dead_code()
    return graph, tensors


def interpreted(nodes: Iterable[Any], rows: dict[str, Op], constants: dict[str, Any], arguments: Any) -> Any:
    """The value of a graph."""
    pytree: Any = import_module("torch.utils._pytree")
    fx: Any = import_module("torch.fx")
    values: dict[Any, Any] = {}

    def value(x: Any) -> Any:
        return values[x] if isinstance(x, fx.Node) else x

    for n in nodes:
        match n.op:
            case "placeholder":
                values[n] = next(arguments)
            case "get_attr":
                values[n] = constants[n.target]
            case "call_function":
                args, kwargs = pytree.tree_map(value, (n.args, n.kwargs), is_leaf=lambda x: isinstance(x, fx.Node))
                values[n] = rows[_name(n)](*args, **kwargs)
            case _:
                return tuple(value(x) for x in n.args[0])
    raise AssertionError("a graph has an output")


def _name(node: Any) -> str:
    return str(node.target).removeprefix("aten.")


def _array(jax: Any, x: Any) -> Any:
    """A tensor as a JAX array; of a parameter, its data."""
    torch: Any = import_module("torch")
    x = x.detach()
    if x.dtype == torch.bfloat16:
        return jax.numpy.asarray(x.float().numpy()).astype(jax.numpy.bfloat16)
    return jax.numpy.asarray(x.numpy())


def table(jax: Any) -> dict[str, Op]:
    """The translation of each operation."""
    return {**_arithmetic(jax), **_shapes(jax), **_indices(jax)}


def _arithmetic(jax: Any) -> dict[str, Op]:
    jnp: Any = jax.numpy

    def scaled(f: Op) -> Op:
        return lambda a, b, alpha=1: f(a, b if alpha == 1 else b * alpha)

    def reduced(f: Op) -> Op:
        return lambda x, dim=None, keepdim=False, dtype=None: f(x, axis=tuple(dim) if dim else None, keepdims=keepdim)

    unary = {
        "neg": jnp.negative, "erf": jax.lax.erf, "exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt, "tanh": jnp.tanh,
        "sigmoid": jax.nn.sigmoid, "relu": jax.nn.relu, "abs": jnp.abs, "sign": jnp.sign, "sin": jnp.sin,
        "cos": jnp.cos, "bitwise_not": jnp.invert, "logical_not": jnp.logical_not, "reciprocal": jnp.reciprocal,
        "rsqrt": jax.lax.rsqrt,
    }  # fmt: skip
    compared = {
        "le": jnp.less_equal, "lt": jnp.less, "ge": jnp.greater_equal, "gt": jnp.greater, "eq": jnp.equal,
        "ne": jnp.not_equal,
    }  # fmt: skip
    binary = {"add": scaled(jnp.add), "sub": scaled(jnp.subtract), "mul": jnp.multiply, "div": jnp.divide, **compared}
    return {
        **{f"{name}.default": f for name, f in unary.items()},
        **{f"{name}.{form}": f for name, f in binary.items() for form in ("Tensor", "Scalar")},
        "pow.Tensor_Scalar": lambda x, n: x ** (int(n) if float(n).is_integer() else n),
        "pow.Tensor_Tensor": jnp.power,
        "gelu.default": lambda x, approximate="none": jax.nn.gelu(x, approximate=approximate != "none"),
        "maximum.default": jnp.maximum,
        "minimum.default": jnp.minimum,
        "logical_and.default": jnp.logical_and,
        "where.self": jnp.where,
        "mm.default": jnp.matmul,
        "bmm.default": jnp.matmul,
        "addmm.default": lambda b, x, w: b + x @ w,
        "sum.dim_IntList": reduced(jnp.sum),
        "sum.default": reduced(jnp.sum),
        "mean.dim": reduced(jnp.mean),
        "mean.default": reduced(jnp.mean),
        "amax.default": reduced(jnp.max),
        "_softmax.default": lambda x, axis, _: jax.nn.softmax(x, axis),
        "_log_softmax.default": lambda x, axis, _: jax.nn.log_softmax(x, axis),
    }


def _shapes(jax: Any) -> dict[str, Op]:
    jnp: Any = jax.numpy

    def expand(x: Any, sizes: Any) -> Any:
        lead = len(sizes) - x.ndim
        return jnp.broadcast_to(x, [x.shape[i - lead] if n == -1 else n for i, n in enumerate(sizes)])

    def cut(x: Any, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
        index = [slice(None)] * x.ndim
        index[axis] = slice(start, end, step)
        return x[tuple(index)]

    def selected(x: Any, axis: int, i: int) -> Any:
        return jnp.take(x, i, axis=axis)

    kept = ("clone.default", "detach.default", "alias.default", "uniform_.default", "normal_.default", "zero_.default")
    return {
        **dict.fromkeys(kept, lambda x, *_, **__: x),  # initial values: of modules whose parameters are replaced
        "view.default": jnp.reshape,
        "_unsafe_view.default": jnp.reshape,
        "permute.default": jnp.transpose,
        "expand.default": expand,
        "unsqueeze.default": jnp.expand_dims,
        "squeeze.dims": lambda x, dims: jnp.squeeze(x, tuple(dims)),
        "squeeze.dim": jnp.squeeze,
        "slice.Tensor": cut,
        "select.int": selected,
        "cat.default": lambda xs, axis=0: jnp.concatenate(xs, axis),
        "_to_copy.default": lambda x, dtype=None, **_: x if dtype is None else x.astype(_dtype(jnp, dtype)),
    }


def _indices(jax: Any) -> dict[str, Op]:
    jnp: Any = jax.numpy

    def index(x: Any, places: Any) -> Any:
        return x[tuple(slice(None) if p is None else p for p in places)]

    def put(x: Any, places: Any, value: Any, accumulate: bool = False) -> Any:
        at = x.at[tuple(slice(None) if p is None else p for p in places)]
        return at.add(value) if accumulate else at.set(value)

    def scatter(x: Any, axis: int, i: Any, value: Any) -> Any:
        return jnp.put_along_axis(x, i, jnp.asarray(value, x.dtype), axis, inplace=False)

    def arange(start: int, end: int, step: int = 1, **_: Any) -> Any:
        return jnp.arange(start, end, step)

    def full(sizes: Any, value: Any, dtype: Any = None, **_: Any) -> Any:
        return jnp.full(sizes, value, None if dtype is None else _dtype(jnp, dtype))

    return {
        "index.Tensor": index,
        "index_put.default": put,
        "embedding.default": lambda w, i, *_: w[i],
        "gather.default": lambda x, axis, i: jnp.take_along_axis(x, i, axis),
        "scatter.value": scatter,
        "scatter.src": scatter,
        "arange.start_step": arange,
        "full.default": full,
        "scalar_tensor.default": lambda value, dtype=None, **_: full((), value, dtype),
        "full_like.default": lambda x, value, **_: jnp.full_like(x, value),
        "empty.memory_format": lambda sizes, dtype=None, **_: full(sizes, 0, dtype),
    }


def _dtype(jnp: Any, dtype: Any) -> Any:
    return getattr(jnp, str(dtype).removeprefix("torch.").replace("bool", "bool_"))
