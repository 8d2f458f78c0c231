"""Small functions that an exported file defines where it uses them; each may use those before it."""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "split_heads": '''def split_heads(x, heads, width):
    """[..., seq, heads * width] → [..., heads, seq, width]."""
    return x.unflatten(-1, (heads, width)).transpose(-3, -2)
''',
    "merge_heads": '''def merge_heads(x):
    """[..., heads, seq, width] → [..., seq, heads * width]."""
    return x.transpose(-3, -2).flatten(-2)
''',
    "sample": '''def sample(logits):
    """A draw per position from the softmax of the last axis, by PyTorch's generator."""
    flat = torch.softmax(logits, dim=-1).reshape(-1, logits.shape[-1])
    return torch.multinomial(flat, 1).reshape(logits.shape[:-1])
''',
    "cross_entropy": '''def cross_entropy(logits, target):
    """-log softmax(logits)[target] per position."""
    flat = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), target.reshape(-1), reduction="none")
    return flat.reshape(target.shape)
''',
    "quotient": '''def quotient(n, m):
    """The integer quotient, rounded towards 0."""
    return abs(n) // abs(m) if (n < 0) == (m < 0) else -(abs(n) // abs(m))
''',
    "maximum": '''def maximum(x, y):
    """The larger entry; at a tie y and its derivative, where `torch.maximum` gives half to each."""
    return torch.where(x > y, x, y)
''',
    "minimum": '''def minimum(x, y):
    """The smaller entry; at a tie y and its derivative, where `torch.minimum` gives half to each."""
    return torch.where(x < y, x, y)
''',
    "sub_tree": '''def sub_tree(state, path):
    """The entries of a state dict below `path`, where `*` is any layer of a stack, whose number stays in the key."""
    steps = path.split(".")
    found = {}
    for key, value in state.items():
        names = key.split(".")
        if len(names) > len(steps) and all(s in ("*", n) for s, n in zip(steps, names)):
            layers = [n for s, n in zip(steps, names) if s == "*"]
            found[".".join([*layers, *names[len(steps) :]])] = value
    return found
''',
    "tree_map": '''def tree_map(f, *trees):
    """`f` at every tensor of parameter trees (state dicts) and tuples; a scalar stands at every leaf."""
    tree = next((t for t in trees if isinstance(t, dict | tuple)), None)
    if isinstance(tree, dict):
        return {k: tree_map(f, *(t[k] if isinstance(t, dict) else t for t in trees)) for k in tree}
    if isinstance(tree, tuple):
        return tuple(tree_map(f, *(t[i] if isinstance(t, tuple) else t for t in trees)) for i in range(len(tree)))
    return f(*trees)
''',
    "on_meta": '''def on_meta(make):
    """A module without memory: its parameters come from a state dict at each call."""
    with torch.device("meta"):
        return make()
''',
    "Method": '''class Method(nn.Module):
    """Another function of a module than `forward`, for `torch.func.functional_call`."""

    def __init__(self, module, name):
        super().__init__()
        self.module = module
        self.name = name

    def forward(self, *args, **kwargs):
        return getattr(self.module, self.name)(*args, **kwargs)
''',
    "call_method": '''def call_method(net, name, state, args, kwargs=None):
    """`net.name(*args)` with the parameters of `state`."""
    named = {f"module.{k}": v for k, v in state.items()}
    return torch.func.functional_call(Method(net, name), named, args, kwargs)
''',
    "Compose": '''class Compose(nn.Module):
    """outer ∘ inner."""

    def __init__(self, outer, inner):
        super().__init__()
        self.outer = outer
        self.inner = inner

    def forward(self, x):
        return self.outer(self.inner(x))
''',
}
NEEDS = {"call_method": ("Method",)}
