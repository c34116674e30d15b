"""Compiling parts of kernels that nothing calls but kernels: no more than their callers need.

numba turns every function into machine code, optimised as far as it goes. A part is copied into its
callers, and optimised there together with them; machine code of it alone is never run.
"""

from typing import Any

from numba.core.bytecode import FunctionIdentity
from numba.core.codegen import JITCodeLibrary, ll  # type: ignore[attr-defined]
from numba.core.compiler import Compiler

ENVIRONMENT = "_ZN08NumbaEnv"
"""What numba has the names of its variables for environments begin with."""


class PieceLibrary(JITCodeLibrary):
    """The code of a part of kernels: simplified once, for others to copy, and never run.

    Parameters
    ----------
    codegen : object
        numba's, for this processor.
    name : str
        Of the part.
    """

    def _optimize_final_module(self) -> None:
        """Run numba's first passes only; the callers get all of them."""
        codegen = self._codegen
        passes, builder = codegen._module_pass_manager(
            loop_vectorize=codegen._loopvect,
            slp_vectorize=False,
            opt=codegen._opt_level,
            cost="cheap",
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        """Keep the code for those who copy it, and have nothing compiled but its variables."""
        self._finalize_dynamic_globals()
        self._finalized = True
        whole = self._get_module_for_linking()
        names = [each.name for each in whole.global_variables if each.name.startswith(ENVIRONMENT)]
        lines = "\n".join(f'@"{name}" = common global i8* null' for name in names)
        self._final_module = ll.parse_assembly(lines)
        self._final_module.name = whole.name
        super()._finalize_final_module()


class PieceCompiler(Compiler):
    """numba's compiler, with a library of its own for the code.

    Parameters
    ----------
    typingctx, targetctx, library, args, return_type, flags, locals : object
        As numba hands them to any compiler.
    """

    def compile_extra(self, function: Any) -> Any:
        """Compile a part of kernels.

        Parameters
        ----------
        function : callable
            The part.

        Returns
        -------
        object
            What numba makes of it.
        """
        name = FunctionIdentity.from_function(function).func_qualname
        self.state.library = PieceLibrary(self.state.targetctx.codegen(), name)
        self.state.library.enable_object_caching()
        return super().compile_extra(function)
