"""Separates the image of a sample from its other values in the ``__getitem__`` of a user's dataset.

For example::

    def __getitem__(self, index):
        row = self.table.iloc[index]
        image = Image.open(self.folder / row["file"]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, torch.tensor(row["label"])

The method is compiled again without its operations on the image: the new function returns the path of the file and the
other values. It is used if the first image that is opened is opened with Pillow or torchvision's loaders, decoded to a
tensor by torchvision or an array by OpenCV, or created from an array, only converted to RGB, and passed to transforms
that are attributes of the dataset; its size may be read before. A sample may have several views of the image. The
image and its label may also be a sample of a supported dataset that is an attribute, or of the superclass. Other
images, such as masks, are other values; a transform of version 2 may get them together with the image. Other methods
are not supported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import product
from types import FunctionType, ModuleType
from typing import Any

import torch

from dalify.plugin.pytorch.dropin.decoder_calls import conversion_of, decoder_of, name_of_check
from dalify.plugin.pytorch.dropin.getitem import MISSING, NotEvaluatedError, attribute_of, getitem_of
from dalify.plugin.pytorch.dropin.getitem_compiling import compiled_lookup
from dalify.plugin.pytorch.dropin.image_sizes import HEADER, header_of, with_sizes
from dalify.plugin.pytorch.dropin.image_symbols import (
    EXPRESSIONS,
    PATH,
    SAMPLE,
    Begun,
    Container,
    FindImages,
    OpenedFile,
    OpenedImage,
    PartReader,
    SeparatedImage,
    assigned,
    expression_of,
    loaded,
    template_of,
    unrolled,
    views_in,
    yielded,
)
from dalify.plugin.pytorch.dropin.lowering import is_deterministic, is_joint
from dalify.plugin.pytorch.dropin.method_scope import MethodScope
from dalify.plugin.pytorch.dropin.opening import IsDecoder, decodes_file, decodes_tensor, opens_image
from dalify.plugin.pytorch.dropin.own_methods import versions_of
from dalify.plugin.pytorch.dropin.sample_form import SampleForm, is_named_tuple
from dalify.plugin.pytorch.dropin.thread_safety import is_safe_function, is_safe_method, is_safe_value, writes_argument
from dalify.plugin.pytorch.dropin.views import views_of
from dalify.plugin.pytorch.dropin.working_folder import FOLDER, ResolvedPaths, WorkingFolder

_VALUE = "dalify_value"


def separate_image(dataset: Any, find_images: FindImages) -> SeparatedImage:
    """Return the image files of a dataset and the other values of its samples.

    Raises:
        NotEvaluatedError: that is not possible; the text quotes the statement of a method that opens an image.
    """
    found = getitem_of(dataset)
    if found is None or not hasattr(dataset, "__dict__") or not hasattr(type(dataset), "__len__"):
        raise NotEvaluatedError
    position = ""
    # Arrays of OpenCV may be changed before images of Pillow are created from them.
    for (definition, methods), decodes in product(versions_of(dataset, *found), (decodes_file, decodes_tensor)):
        separation = _Separation(dataset, found[0], definition, find_images, decodes)
        with suppress(NotEvaluatedError):
            separated = separation.result()
            if not (methods and separated.user_code):  # reports quote the user's own code
                return replace(separated, watched=(*separated.watched, *methods))
        position = position or ("" if methods else separation.position())
    raise NotEvaluatedError(position)


class _Separation:
    """Evaluates a method with symbols for the image, and collects the other statements.

    Args:
        dataset: the dataset.
        function: its method.
        definition: the syntax tree of the method.
        find: returns the images of another dataset.
        decodes: returns whether a function decodes the image to a tensor or an array.
    """

    def __init__(
        self, dataset: Any, function: FunctionType, definition: ast.FunctionDef, find: FindImages, decodes: IsDecoder
    ) -> None:
        self._dataset = dataset
        self._find_images, self._decodes = find, decodes
        self._inner: Any = None
        self._inner_lookup: Callable[[Any], tuple[Any, Any]] | None = None
        self._function = function
        self._definition = definition
        self._scope = MethodScope(dataset, function, definition)
        self._current: ast.stmt = definition
        self._symbols: dict[str, Any] = {}  # variables with the image, or with a container
        self._statements: list[ast.stmt] = []
        self._is_opened = self._opens_files = False
        self._user_code = ""
        self._calls = 0  # of transforms
        self._first_call: int | None = None  # the statement before which the first transform is called
        self._has_late_code = self._is_joint = self._is_checked = False

    def position(self) -> str:
        """Return a string with the current statement; empty if the method opens no image."""
        code = ast.unparse(self._current).partition("\n")[0]
        line = f"{self._function.__code__.co_filename}:{self._current.lineno}"
        opens = self._is_opened or self._uses_image(self._definition)
        return f", because of this code in its __getitem__ ({line}): {code}" if opens else ""

    def result(self) -> SeparatedImage:
        """Return the result; NotEvaluatedError if the method is not supported."""
        value = self._run(self._definition.body)
        container = value if isinstance(value, Container) else Container(tuple, {0: value})
        leaves = list(container.leaves())
        views = views_in(leaves, self._calls)
        is_late = self._has_late_code
        if self._is_joint and (is_late or len(views) > 1):
            raise NotEvaluatedError
        if self._is_checked and self._user_code:  # the method runs twice to raise its error
            raise NotEvaluatedError
        names = [leaf for leaf in leaves if isinstance(leaf, str)]
        folder = WorkingFolder()
        lookup = partial(self._compiled(names), folder, self._inner_lookup, header_of(self._opens_files), self._dataset)
        if is_late or self._is_joint:
            lookup = partial(Begun.start, lookup)
        template = template_of(value, iter(range(len(names))), views)
        return SeparatedImage(
            lookup,
            SampleForm(template),
            tuple(views),
            self._opens_files,
            self._user_code,
            tuple(self._scope.watched),
            self._inner,
            is_late,
            self._is_joint,
            folder,
        )

    def _compiled(self, names: list[str]) -> Callable[..., Any]:
        """Return a function that returns the path and these variables, see `compiled_lookup`."""
        resolved = ResolvedPaths(self._scope.resolved)  # of files that the user's code opens, such as masks
        statements: list[ast.stmt] = [resolved.visit(deepcopy(statement)) for statement in self._statements]
        position = self._first_call or 0 if self._has_late_code else None
        return compiled_lookup(
            self._function, self._definition, statements, names, yield_at=position, is_joint=self._is_joint
        )

    def _run(self, statements: list[ast.stmt]) -> Any:
        """Return the value that the statements return; None if they return nothing."""
        for statement in statements:
            self._current = statement
            if self._is_array(ast.Name(name_of_check(statement))):
                self._is_checked = True
                continue
            match with_sizes(statement, self._symbols):
                case ast.Return(value=ast.expr() as value):
                    return self._stored(self._value(value), statement)
                case (
                    ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    self._assign(target, self._value(value), statement)
                case ast.If() as block:
                    found = self._run_if(block)
                    if found is not None:
                        return found
                case ast.With([ast.withitem(context_expr=context, optional_vars=ast.Name(id=name))], body):
                    self._symbols[name] = self._opened_in_block(context)
                    found = self._run(body)
                    if found is not None:
                        return found
                case other:
                    self._keep(other)
        return None

    def _run_if(self, statement: ast.If) -> Any:
        try:
            is_true = self._scope.truth(statement.test)
        except NotEvaluatedError:  # it differs between samples
            self._keep(statement)
            return None
        return self._run(statement.body if is_true else statement.orelse)

    def _keep(self, statement: ast.stmt) -> None:
        """Keep a statement that does not use the image."""
        self._check_statement(statement)
        self._statements.append(statement)

    def _check_statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Pass() | ast.Break() | ast.Continue() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=ast.Call() as call):
                self._check(call)
                self._note_user_code(call)
            case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
                self._check(value)
                self._forget(target)
            case ast.If(test=test, body=body, orelse=others) | ast.While(test=test, body=body, orelse=others):
                self._check(test)
                for each in (*body, *others):
                    self._check_statement(each)
            case ast.For(target=target, iter=values, body=body, orelse=others):
                self._check(values)
                self._forget(target)
                for each in (*body, *others):
                    self._check_statement(each)
            case ast.Assert(test=test, msg=None | ast.Constant()) | ast.Raise(exc=ast.expr() as test, cause=None):
                self._check(test)
            case _:
                raise NotEvaluatedError

    def _forget(self, target: ast.expr) -> None:
        """Check a target of an assignment without the image; its variables are no longer the image."""
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        for name in names:
            if isinstance(name, ast.Subscript):
                self._check_item(name)
                continue
            if not isinstance(name, ast.Name) or name.id == self._scope.own or name.id in self._symbols:
                raise NotEvaluatedError

    def _check_item(self, item: ast.Subscript) -> None:
        """Check an assignment to an element; threads run it only if the method has created the container."""
        match item.value:
            case ast.Name(id=name) if name in self._scope.names and name not in (self._scope.own, *self._symbols):
                self._check(item.slice)
                if not self._scope.creates(name):
                    self._note_user_code(item)
            case _:
                raise NotEvaluatedError

    def _opened_in_block(self, context: ast.expr) -> Any:
        """Return the value of ``open(path, "rb")`` or of an opened image in a ``with`` statement."""
        match context:
            case ast.Call(func=function, args=[path, ast.Constant(value="rb")], keywords=[]):
                if self._scope.resolved(function) is open:
                    self._check(path)
                    return OpenedFile(self._stored(path, context))
            case _:
                value = self._value(context)
                if isinstance(value, OpenedImage):
                    return value
        raise NotEvaluatedError

    def _assign(self, target: ast.expr, value: Any, statement: ast.stmt) -> None:
        match target:
            case ast.Name(id=name):
                self._bind(name, value, statement)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)) if name in self._symbols:
                container = self._symbols[name]
                if not isinstance(container, Container) or container.kind is not dict:
                    raise NotEvaluatedError
                container.parts[key] = self._stored(value, statement)
            case ast.Tuple(elts=targets) if isinstance(value, Container):
                if value.kind is dict or len(targets) != len(value.parts):
                    raise NotEvaluatedError
                for each, part in zip(targets, value.parts.values(), strict=True):
                    self._assign(each, loaded(part) if isinstance(part, str) else part, statement)
            case _:
                if not isinstance(value, ast.expr):
                    raise NotEvaluatedError
                self._forget(target)
                self._append(target, value, statement)

    def _bind(self, name: str, value: Any, statement: ast.stmt) -> None:
        if name == self._scope.own:
            raise NotEvaluatedError
        if not isinstance(value, ast.expr):
            self._symbols[name] = value
            return
        self._symbols.pop(name, None)
        self._append(assigned(name), value, statement)

    def _append(self, target: ast.expr, value: ast.expr, position: ast.AST) -> None:
        """Append an assignment with the line of a node."""
        self._statements.append(ast.copy_location(ast.Assign([target], value), position))

    def _stored(self, value: Any, statement: ast.AST) -> Any:
        """Return images and containers unchanged, and the name of a new variable for another value."""
        if not isinstance(value, ast.expr):
            return value
        name = f"{_VALUE}_{len(self._statements)}"
        self._append(assigned(name), value, statement)
        return name

    def _value(self, expression: ast.expr) -> Any:
        """Return the image or a container with it, otherwise the expression."""
        match expression:
            case ast.Name(id=name) if name in self._symbols:
                return self._symbols[name]
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if self._uses_image(expression):
                kind = tuple if isinstance(expression, ast.Tuple) else list
                return self._container(kind, range(len(parts)), parts, expression)
            case ast.ListComp() if self._uses_image(expression):
                return self._value(unrolled(expression, self._scope.constant))
            case ast.Dict(keys=keys, values=parts) if all(isinstance(key, ast.Constant) for key in keys):
                names = [key.value for key in keys if isinstance(key, ast.Constant)]
                return self._container(dict, names, parts, expression)
            case ast.Subscript(value=owner, slice=ast.Constant(value=key)) if self._uses_image(owner):
                container = self._value(owner)
                part = container.parts.get(key) if isinstance(container, Container) else None
                if isinstance(part, str):
                    return ast.copy_location(loaded(part), expression)
                if part is None:
                    raise NotEvaluatedError
                return part
            case ast.IfExp(test=test, body=body, orelse=other) if self._uses_image(expression):
                return self._value(body if self._scope.truth(test) else other)
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Tuple(elts=parts) as right) if self._uses_image(left):
                first = self._value(left)
                if isinstance(first, Container) and first.kind is tuple:
                    count = len(first.parts)
                    others = self._container(tuple, range(count, count + len(parts)), parts, right)
                    return Container(tuple, {**first.parts, **others.parts})
            case ast.Call() if self._uses_image(expression) and is_named_tuple(self._scope.resolved(expression.func)):
                return self._named_tuple(expression)
            case ast.Call() | ast.Subscript() if (converted := self._converted(expression)) is not None:
                return converted
            case ast.Call(args=[ast.Name(id=name), _, *_], keywords=[]) if isinstance(
                image := self._symbols.get(name), OpenedImage
            ):
                return self._jointly_transformed(expression, image)
            case ast.Subscript() | ast.Call():
                found = self._sample_of_another(expression)
                if found is None and isinstance(expression, ast.Call):
                    found = self._image(expression)
                if found is not None:
                    return found
            case _:
                pass
        expression = PartReader(self._symbols).visit(deepcopy(expression))
        self._check(expression)
        return expression

    def _container(self, kind: type, names: Any, parts: list[ast.expr], expression: ast.expr) -> Container:
        values = [self._stored(self._value(part), expression) for part in parts]
        return Container(kind, dict(zip(names, values, strict=True)))

    def _named_tuple(self, call: ast.Call) -> Container:
        """Return a named tuple with the image."""
        kind = self._scope.resolved(call.func)
        given: dict[Any, ast.expr] = dict(zip(kind._fields, call.args, strict=False))
        given.update({keyword.arg: keyword.value for keyword in call.keywords})
        has_each_once = len(given) == len(call.args) + len(call.keywords) and given.keys() == set(kind._fields)
        if not has_each_once or any(isinstance(part, ast.Starred) for part in call.args):
            raise NotEvaluatedError
        found = self._container(kind, given, list(given.values()), call)
        return Container(kind, {place: found.parts[name] for place, name in enumerate(kind._fields)})

    def _uses_image(self, expression: ast.AST) -> bool:
        """Return whether an expression opens the image, or contains variables with it."""
        return any(
            (isinstance(node, ast.Name) and node.id in self._symbols)
            or (isinstance(node, ast.Call) and self._opens_image(node.func))
            or (isinstance(node, ast.Subscript | ast.Call) and self._other_of(node) is not None)
            for node in ast.walk(expression)
        )

    def _other_of(self, expression: ast.expr) -> tuple[Any, FunctionType | None, ast.expr] | None:
        """Return the dataset whose sample an expression is, the inherited method that reads it, and the index."""
        match expression:
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr=attribute), slice=index):
                other = attribute_of(self._dataset, attribute) if name == self._scope.own else MISSING
                if isinstance(other, torch.utils.data.Dataset) or hasattr(other, "__getitems__"):
                    return other, None, index
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr="__getitem__"), args=[index]
            ) if self._function.__closure__:
                owner: Any = self._function.__closure__[0].cell_contents
                reads = getattr(getattr(super(owner, self._dataset), "__getitem__", None), "__func__", None)
                if isinstance(reads, FunctionType):
                    return self._dataset, reads, index
            case _:
                pass
        return None

    def _sample_of_another(self, expression: ast.expr) -> Container | None:
        """Return image and label of a sample of another dataset, or of the superclass; None for other expressions."""
        found = self._other_of(expression)
        if found is None:
            return None
        other, reads, index = found
        is_possible = not self._is_opened and (other is not self._dataset or reads is not None)
        images = self._find_images(other, reads) if is_possible else None
        if images is None:
            raise NotEvaluatedError
        self._check(index)
        self._is_opened, self._opens_files = True, images.opens_files
        self._inner, self._inner_lookup = None if reads else other, images.lookup
        if isinstance(expression, ast.Subscript) and isinstance(expression.value, ast.Attribute):
            self._scope.watched[expression.value.attr] = None
        label = f"{_VALUE}_{len(self._statements)}"
        targets = ast.Tuple([assigned(PATH), assigned(label)], ast.Store())
        self._append(targets, ast.Call(loaded(SAMPLE), [index], []), expression)
        image = self._transformed(replace(images.image, transforms=()), *images.image.transforms)
        if images.columns is None:
            return Container(tuple, {0: image, 1: label})
        values = {name: ast.Subscript(loaded(label), ast.Constant(name), ast.Load()) for name in images.columns}
        parts = {
            name: image if is_image else self._stored(values[name], expression)
            for name, is_image in images.columns.items()
        }
        return Container(dict, parts)

    def _image(self, call: ast.Call) -> OpenedImage | None:
        """Return the image that a call opens, converts or transforms; None for other calls."""
        match call:
            case ast.Call(
                func=ast.Attribute(value=owner, attr="convert"), args=[ast.Constant(value="RGB")], keywords=[]
            ):
                image = self._value(owner)
                if isinstance(image, OpenedImage) and not image.transforms and image.is_pillow:
                    return replace(image, is_rgb=True)
            case ast.Call(func=function, args=[argument, *_]) if self._decodes_image(function):
                image = OpenedImage(*decoder_of(self._scope.resolved(function), call, self._option))
                return self._open(argument, image, call)
            case ast.Call(func=function, args=[argument], keywords=[]):
                called = self._scope.resolved(function)
                is_rgb = opens_image(called)
                if is_rgb is not None and not self._is_opened:
                    if isinstance(function, ast.Attribute) and self._scope.is_own(function):
                        self._scope.watched[function.attr] = None
                    self._opens_files |= is_rgb  # torchvision's loaders open them
                    return self._open(argument, OpenedImage(is_rgb), call)
                if isinstance(function, ast.Attribute) and self._uses_image(argument):
                    image = self._value(argument)
                    if isinstance(image, OpenedImage) and self._is_transform(function):
                        return self._transformed(image, called)
            case _:
                pass
        return None

    def _converted(self, expression: ast.expr) -> OpenedImage | None:
        """Return the image after a conversion of its array; None for other expressions."""
        found = conversion_of(expression, self._scope.resolved)
        if found is None or not self._is_array(found.argument):
            return None
        image = self._value(found.argument)
        return replace(image, decode=found.of(image.decode))

    def _is_array(self, expression: ast.expr) -> bool:
        """Return whether an expression is the image before its transforms, as an array, or a conversion of it."""
        if isinstance(expression, ast.Name):
            image = self._symbols.get(expression.id)
            return isinstance(image, OpenedImage) and not image.is_pillow and not image.transforms
        found = conversion_of(expression, self._scope.resolved)
        if found is not None:
            return self._is_array(found.argument)
        return isinstance(expression, ast.Call) and self._decodes_image(expression.func)

    def _jointly_transformed(self, call: ast.Call, image: OpenedImage) -> Container:
        """Return the image and the other values that a transform of version 2 returns for them."""
        is_first = image.is_rgb and image.is_pillow and not self._calls
        transform = self._scope.resolved(call.func)
        is_own = isinstance(call.func, ast.Attribute) and self._is_transform(call.func)
        if not (is_first and is_own and is_joint(transform)):
            raise NotEvaluatedError
        values = [expression_of(self._value(argument)) for argument in call.args[1:]]
        names = [f"{_VALUE}_{len(self._statements)}_{number}" for number in range(len(values))]
        transformed = self._transformed(image, transform)
        self._is_joint = True
        self._append(ast.Tuple(list(map(assigned, names)), ast.Store()), yielded(values), call)
        parts = dict(enumerate([transformed, *names]))
        return Container(tuple, parts)

    def _option(self, value: ast.expr) -> Any:
        is_own = isinstance(value, ast.Attribute) and self._scope.is_own(value)
        return self._scope.constant(value) if is_own or isinstance(value, ast.Constant) else self._scope.resolved(value)

    def _open(self, argument: ast.expr, image: OpenedImage, call: ast.Call) -> OpenedImage:
        self._is_opened = True
        file = self._symbols.get(argument.id) if isinstance(argument, ast.Name) else None
        self._opens_files |= isinstance(file, OpenedFile)
        path = loaded(file.path) if isinstance(file, OpenedFile) else argument
        self._check(path)
        self._append(assigned(PATH), path, call)
        return image

    def _opens_image(self, function: ast.expr) -> bool:
        """Return whether a function opens the image, which is the first one that is opened."""
        is_first = not self._is_opened and opens_image(self._scope.resolved(function)) is not None
        return is_first or self._decodes_image(function)

    def _decodes_image(self, function: ast.expr) -> bool:
        """Return whether a function decodes the image, which is the first one that is opened."""
        return not self._is_opened and self._decodes(self._scope.resolved(function))

    def _is_transform(self, function: ast.Attribute) -> bool:
        """Return whether a function is an attribute of this instance of the dataset, and remember to watch it."""
        if not self._scope.is_own(function) or function.attr not in vars(self._dataset):
            return False
        self._scope.watched[function.attr] = None
        return callable(vars(self._dataset)[function.attr])

    def _check(self, expression: ast.expr) -> None:
        """Check that an expression does not use the image, and note calls of functions that may be the user's."""
        uses = 0  # of the dataset, other than for attributes
        for node in ast.walk(expression):
            if isinstance(node, ast.expr) and not isinstance(node, EXPRESSIONS):
                raise NotEvaluatedError
            match node:
                case ast.Name(id=name) if name in self._symbols:
                    raise NotEvaluatedError
                case ast.Attribute(attr=name) | ast.Name(id=name) if name.startswith("__"):
                    raise NotEvaluatedError  # a class changes private names
                case ast.Name(id=name) if name == self._scope.own:
                    uses += 1
                case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self._scope.own:
                    uses -= 1
                    self._check_value(attribute_of(self._dataset, name), node)
                case ast.Name(id=name) if name not in self._scope.names:
                    value = self._scope.resolved(node)
                    is_code = isinstance(value, ModuleType | type) or callable(value)
                    if not is_code and value is not MISSING:
                        self._check_value(value, node)
                case ast.Call(func=function):
                    self._check_call(function)
                    if writes_argument(node):
                        self._note_user_code(node)
                case _:
                    pass
        if uses:
            self._note_user_code(expression)

    def _check_call(self, function: ast.expr) -> None:
        called = self._scope.resolved(function)
        if self._opens_image(function) or called is open:
            raise NotEvaluatedError
        is_method = called is MISSING and isinstance(function, ast.Attribute) and is_safe_method(function.attr)
        is_method |= isinstance(function, ast.Name) and function.id in (FOLDER, HEADER)
        is_safe = is_method or decodes_tensor(called) or (called is not MISSING and is_safe_function(called))
        is_transform = isinstance(function, ast.Attribute) and self._is_transform(function)
        if not (is_safe or (is_transform and is_deterministic(called))):
            self._note_user_code(function)

    def _check_value(self, value: Any, expression: ast.expr) -> None:
        """Note an attribute or global variable that threads may not be able to read."""
        if not (is_safe_value(value) or is_deterministic(value)):
            self._note_user_code(expression)

    def _transformed(self, image: OpenedImage, *transforms: Any) -> Any:
        """Return an image after calls of transforms; a container if the only one returns views."""
        if self._has_late_code and not all(map(is_deterministic, transforms)):
            raise NotEvaluatedError  # the code before it may draw random numbers, too
        if transforms and not self._calls:
            self._first_call = len(self._statements)
        views = views_of(transforms[0]) if len(transforms) == 1 and not image.transforms else None
        if views is not None:
            parts = [self._transformed(image, each) for each in views.transforms]
            return Container(views.kind, {place: parts[number] for place, number in enumerate(views.order)})
        calls = range(self._calls, self._calls + len(transforms))
        self._calls += len(transforms)
        return replace(image, transforms=(*image.transforms, *transforms), calls=(*image.calls, *calls))

    def _note_user_code(self, expression: ast.expr) -> None:
        self._user_code = self._user_code or ast.unparse(expression)
        self._has_late_code |= self._calls > 0  # it may draw random numbers after the transforms
