"""Codes of requests: wrong usage, an entry that is not there, a device, a proof that fails, a bug of presk itself."""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage, Kind


def _page(code: str, title: str, meaning: str, failing: str, fixed: str, kind: Kind = "user error") -> CodePage:
    severity = "warning" if code.startswith("W") else "error"
    return CodePage(code, severity, kind, title, meaning, failing, fixed, situation=True)


PAGES: Final = (
    _page(
        "E7000",
        "wrong usage",
        "The command line is not one that presk reads: no such file, an option that is not there, a value that it does "
        "not take (exit status 2). In text, the command's usage is shown; this code is that of the answer with --json.",
        "presk check --json no_such_file.psk",
        "presk check --json mlp.psk",
    ),
    _page(
        "E7001",
        "no such function",
        "The entry, or the function asked about, is none of the program's. Names that are close are shown.",
        "presk run mlp.psk --entry mse_grd",
        "presk run mlp.psk --entry mse_grad",
    ),
    _page(
        "E7002",
        "nothing to run",
        "A file that is a training run is not executed (exit status 3); its functions are, with --entry.",
        "presk run train_minigpt.psk",
        "presk run train_minigpt.psk --entry loss",
    ),
    _page(
        "E7101",
        "not run by the torch executor",
        "An operation that has no torch code yet (exit status 3). The exact executor runs it.",
        "presk run f.psk --entry f --executor torch",
        "presk run f.psk --entry f",
        "limit",
    ),
    _page(
        "E7102",
        "no such device here",
        "The device exists in principle, but torch sees none on this machine (exit status 3).",
        "presk run mlp.psk --entry mse --executor torch --device cuda",
        "presk run mlp.psk --entry mse --executor torch --device cpu",
    ),
    _page(
        "E7103",
        "an unknown device",
        "A device is cpu, cuda or cuda:n (exit status 2).",
        "presk run mlp.psk --entry mse --executor torch --device gpu",
        "presk run mlp.psk --entry mse --executor torch --device cuda",
    ),
    _page(
        "W7104",
        "a tier that cannot be had",
        "--tier inductor compiles the generated torch code, which takes a C++ compiler ($CXX, a name or path without "
        "arguments, else g++ or clang++) or CUDA. Where there is none, or it fails on this program, the code runs as "
        "it is (tier emit), which computes the same; the warning says why.",
        "CXX=/nothing presk run mlp.psk --entry mse --executor torch --tier inductor",
        "presk run mlp.psk --entry mse --executor torch --tier inductor",
    ),
    _page(
        "E7105",
        "an unknown baseline",
        "`presk bench --against` takes eager, compile and jax (exit status 3).",
        "presk bench mlp.psk --entry mse_grad --against theano",
        "presk bench mlp.psk --entry mse_grad --against eager,compile",
    ),
    _page(
        "E7106",
        "a baseline that cannot be had",
        "The library that the baseline runs on is not installed here, has no equivalent of something that the program "
        "does, or fails on these inputs, as torch does on some lengths of 0 (exit status 3).",
        "presk bench mlp.psk --entry mse_grad --against jax",
        "presk bench mlp.psk --entry mse_grad --against eager",
        "limit",
    ),
    _page(
        "E8001",
        "a proof that does not verify",
        "The independent checker refused the optimizer's proof, so the optimized program is not run. This is presk's "
        "fault: please report it with the program; --no-opt runs the program as differentiated.",
        "presk run f.psk --entry f --verify",
        "presk run f.psk --entry f --no-opt",
        "limit",
    ),
    _page(
        "E9001",
        "not supported by this version",
        "The program is right, and uses something that what was asked for does not have (exit status 3): PyTorch's "
        "einsum has 52 letters, and the baselines of `presk bench` have no counterpart of some functions.",
        "presk export wide_ein.psk --target pytorch",
        "presk run wide_ein.psk --entry f",
        "limit",
    ),
    _page(
        "E9999",
        "a bug in presk",
        "An internal invariant failed: exit status 4. The message names the pass. It is not a mistake of your program; "
        "please report it with the program. --debug prints where it happened.",
        "presk run f.psk --entry f",
        "presk run f.psk --entry f --debug",
        "limit",
    ),
)
