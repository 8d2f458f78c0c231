"""The interpreter for programs that nobody has estimated: it meets what is undefined at the dimensions given (E7003)
when it comes to it. (`exec.exact.run` asks before it runs anything.)"""

from __future__ import annotations

from presk_rel.core.ir import Binding, Prim
from presk_rel.exec.exact.defined import check_defined
from presk_rel.exec.exact.interp import Frame, Interpreter
from presk_rel.exec.values import Value


class CheckedInterpreter(Interpreter):
    """See the module's head."""

    def primitive(self, frame: Frame, binding: Binding, op: Prim, args: tuple[Value, ...]) -> Value:
        check_defined(self.step(frame, binding, op, args))
        return super().primitive(frame, binding, op, args)
