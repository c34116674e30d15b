"""Pass named tuples to kernels as a single pointer, so that inner calls cost nothing.

numba passes a tuple as what it is made of, an array as seven values or more: `Problem` and `State`
of `evenkeel_kernels.core.problem` together are some 650 arguments of every call, each of which is
typed, lowered and optimised wherever a kernel calls a piece. As a pointer they are two. What a
tuple refers to is laid out once, when Python calls a kernel, and lies still until that returns.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from numba.core import cgutils, types
from numba.core.cgutils import ir  # type: ignore[attr-defined]
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.core.typing.typeof import typeof_impl
from numba.extending import NativeValue, infer_getattr, register_model, unbox

K = TypeVar("K", bound=type[tuple[Any, ...]])

_pointed_at: set[type] = set()


def by_reference(kind: K) -> K:
    """Have kernels take a class of named tuples as a pointer; no kernel can create one then."""
    _pointed_at.add(kind)

    @typeof_impl.register(kind)
    def _(given: tuple[Any, ...], context: Any) -> TuplePointer | None:
        fields = [typeof_impl(each, context) for each in given]
        return None if None in fields else TuplePointer(kind, tuple(fields))

    return kind


def tuple_type(kind: type[tuple[Any, ...]], fields: tuple[types.Type, ...]) -> types.Type:
    """Return the type that kernels take a named tuple of such fields as."""
    if kind in _pointed_at:
        return TuplePointer(kind, fields)
    made: types.Type = types.BaseTuple.from_types(fields, kind)
    return made


class TuplePointer(types.Type):
    """A pointer to the fields of a named tuple; those of a tuple within it lie among them."""

    def __init__(
        self, instance_class: type[tuple[Any, ...]], fields: tuple[types.Type, ...]
    ) -> None:
        self.instance_class, self.types = instance_class, fields
        kind = f"{instance_class.__module__}.{instance_class.__qualname__}"
        super().__init__(f"{kind}*({', '.join(map(str, fields))})")

    @property
    def key(self) -> tuple[type, tuple[types.Type, ...]]:
        """What makes two types the same."""
        return self.instance_class, self.types

    def place_of(self, name: str) -> int:
        """Return which field a name is; -1 for none."""
        names: tuple[str, ...] = self.instance_class._fields  # type: ignore[attr-defined]
        return names.index(name) if name in names else -1


def _layout(manager: Any, kind: types.Type) -> ir.Type:
    if isinstance(kind, TuplePointer):
        return ir.LiteralStructType([_layout(manager, each) for each in kind.types])
    return manager[kind].get_value_type()


@register_model(TuplePointer)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: TuplePointer) -> None:
        pointer = _layout(manager, kind).as_pointer()
        super().__init__(manager, kind, pointer)  # type: ignore[no-untyped-call]


@infer_getattr
class _Fields(AttributeTemplate):
    key = TuplePointer

    def generic_resolve(  # type: ignore[override]
        self, kind: TuplePointer, name: str
    ) -> types.Type | None:
        place = kind.place_of(name)
        return kind.types[place] if place >= 0 else None


@lower_getattr_generic(TuplePointer)  # type: ignore[untyped-decorator]
def _read(context: Any, builder: Any, kind: TuplePointer, pointer: Any, name: str) -> Any:
    """Read a field; nothing ever writes one, so that a loop need read it no more than once."""
    place = kind.place_of(name)
    where = cgutils.gep_inbounds(builder, pointer, 0, place)
    if isinstance(kind.types[place], TuplePointer):
        return where
    value = builder.load(where)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return impl_ret_borrowed(context, builder, kind.types[place], value)


class _Laying(NamedTuple):
    """What laying out a tuple needs besides its fields: whether one failed, what is let go of."""

    tools: Any
    failed: Any
    let_go: list[Callable[[], object]]


@unbox(TuplePointer)  # type: ignore[untyped-decorator]
def _laid_out(kind: TuplePointer, given: Any, tools: Any) -> NativeValue:
    """Lay out the fields of a tuple on the stack of the function that Python calls."""
    builder = tools.builder
    storage = cgutils.alloca_once(builder, _layout(tools.context.data_model_manager, kind))
    failed = cgutils.alloca_once_value(builder, cgutils.false_bit)
    laying = _Laying(tools, failed, [])
    _lay(kind, given, storage, laying)

    def let_go() -> None:
        for each in laying.let_go:
            each()

    return NativeValue(
        _unknown_from_here(builder, storage),
        is_error=builder.load(failed),
        cleanup=let_go if laying.let_go else None,
    )


def _lay(kind: TuplePointer, given: Any, storage: Any, laying: _Laying) -> None:
    tools, failed, let_go = laying
    builder = tools.builder
    for i, field in enumerate(kind.types):
        value = tools.pyapi.tuple_getitem(given, i)
        where = cgutils.gep_inbounds(builder, storage, 0, i)
        if isinstance(field, TuplePointer):
            _lay(field, value, where, laying)
        elif isinstance(field, types.Array) and not tools.context.enable_nrt:
            place = builder.bitcast(where, tools.pyapi.voidptr)
            wrong = tools.pyapi.numba_array_adaptor(value, place)
            _note(builder, failed, cgutils.is_not_null(builder, wrong))
        else:
            native = tools.unbox(field, value)
            builder.store(native.value, where)
            _note(builder, failed, native.is_error)
            if native.cleanup is not None:
                let_go.append(native.cleanup)
            if tools.context.enable_nrt:
                let_go.append(_releasing(tools, field, native.value))


def _note(builder: Any, failed: Any, wrong: Any) -> None:
    builder.store(builder.or_(builder.load(failed), wrong), failed)


def _releasing(tools: Any, field: types.Type, value: Any) -> Callable[[], object]:
    return lambda: tools.context.nrt.decref(tools.builder, field, value)


def _unknown_from_here(builder: Any, pointer: Any) -> Any:
    """Hide where a pointer comes from, so that nothing is read through it before it is written."""
    # fields are read as what never changes, which is true for those who get this pointer only
    same = ir.FunctionType(pointer.type, [pointer.type])
    return builder.asm(same, "", "=r,0,~{memory}", [pointer], True)
