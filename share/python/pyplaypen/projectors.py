"""Type projectors: functions that turn a value without a JSON form into one that has one.

``numpy_pandas`` knows numpy's and pandas' types, ``rich`` these and the standard library's:

    ==============================  ==================================================
    numpy scalar                    its Python value
    numpy array, any dimensions     nested lists
    masked element                  null
    datetime64                      ISO 8601 text in the array's own resolution
    timedelta64, Timedelta          seconds, as a number
    NaT, NA                         null
    structured scalar               an object by field names
    DataFrame                       {"columns": [...], "rows": [[...]], "row_count": N}
    Series, Index, Categorical,     list of values
    other pandas arrays
    Timestamp                       ISO 8601 text
    Period, Interval                text
    ==============================  ==================================================

    only ``rich``:

    ==============================  ==================================================
    dataclass, namedtuple           an object by field names
    Enum                            its value
    UUID                            text
    bytes, bytearray, memoryview    text, base64
    complex                         {"real": x, "imag": y}
    timedelta                       seconds, as a number
    NaN, Infinity, -Infinity        {"$float": "NaN"} and so on
    matplotlib Figure, Axes         name of a PNG file that is saved as an artifact
    ==============================  ==================================================

What is missing in a pandas object (NaN included) is null: that is what NaN means there. In a numpy
array NaN is a number without a JSON form, which ``numpy_pandas`` leaves to be refused.

No rows are left out: a table is returned whole, or refused with ``return_limit``. Cut it in the
code (``df.head(100)``) when a part is enough. An index is not part of the projection;
``reset_index()`` makes it a column, ``to_dict()`` makes a Series an object.

Nothing here imports numpy, pandas or matplotlib: a value of theirs exists only where they are
loaded.

A projector returns plain data or another value to be projected, raises for what it does not know,
and answers ``NotImplemented`` to leave a value that it was offered first (see ``wants``) to the
ordinary rule.
"""

import base64
import dataclasses
import datetime
import enum
import sys
import uuid
import weakref


def numpy_pandas(value):
    answer = _numpy(value)
    if answer is _UNKNOWN:
        answer = _pandas(value)
    if answer is _UNKNOWN:
        if isinstance(value, _PLAIN):
            return NotImplemented
        raise ValueError(f"no projection for {_type_name(value)}")
    return answer


# NaT is a datetime to isinstance(), and must not become the text "NaT".
numpy_pandas.wants = ("subclasses",)


def rich(value):
    for known in (_numpy, _pandas, _standard, _matplotlib):
        answer = known(value)
        if answer is not _UNKNOWN:
            return answer
    if isinstance(value, _PLAIN):
        return NotImplemented
    raise ValueError(f"no projection for {_type_name(value)}")


rich.wants = ("subclasses", "non_finite")


_UNKNOWN = object()
_PLAIN = (str, int, float, list, tuple, dict, set, frozenset, datetime.date, datetime.time)
_saved_figures = weakref.WeakKeyDictionary()


def _type_name(value):
    kind = type(value)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _numpy(value):
    np = sys.modules.get("numpy")
    if np is None:
        return _UNKNOWN
    if isinstance(value, np.ndarray):
        return _array(np, value)
    if not isinstance(value, np.generic):
        return _UNKNOWN
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _array(np, np.asarray(value)[None])[0]
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if isinstance(value, np.floating):
        if not isinstance(value, float):
            return float(value)
        return NotImplemented if np.isfinite(value) else _UNKNOWN
    if isinstance(value, np.complexfloating):
        return complex(value)
    if isinstance(value, np.bytes_):
        return value.decode()
    if isinstance(value, np.void):
        names = value.dtype.names
        return value.tobytes() if names is None else {name: value[name] for name in names}
    return NotImplemented if isinstance(value, str) else value.item()


def _array(np, array):
    masked = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    if array.ndim == 0:
        return None if masked is not None and masked[()] else array[()]
    kind = array.dtype.kind
    if kind in "Mm":
        missing = np.isnat(np.ma.getdata(array))
        data = np.ma.getdata(array)
        if kind == "M":
            result = np.datetime_as_string(data).astype(object)
        elif np.datetime_data(data.dtype)[0] in ("Y", "M", "generic"):
            result = data.astype(np.int64).astype(object)  # no seconds in these; the bare number
        else:
            result = (data / np.timedelta64(1, "s")).astype(object)
        result[missing if masked is None else missing | masked] = None
        return result.tolist()
    if kind == "V" and array.dtype.names is not None:
        return list(array)
    if kind == "S":
        data = np.char.decode(np.ma.getdata(array), "utf-8").astype(object)
        if masked is not None:
            data[masked] = None
        return data.tolist()
    if kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(float)
    return array.tolist()


def _pandas(value):
    pd = sys.modules.get("pandas")
    if pd is None or not hasattr(pd, "DataFrame"):  # while pandas itself is being imported
        return _UNKNOWN
    if isinstance(value, pd.DataFrame):
        columns = [_values(pd, value.iloc[:, i]) for i in range(value.shape[1])]
        rows = list(map(list, zip(*columns))) if columns else [[] for _ in range(len(value))]
        return {"columns": list(value.columns), "rows": rows, "row_count": len(rows)}
    if isinstance(value, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        return _values(pd, value)
    if value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, pd.Timestamp):
        return NotImplemented
    if isinstance(value, pd.Timedelta):
        return value.total_seconds()
    if isinstance(value, (pd.Period, pd.Interval)):
        return str(value)
    return _UNKNOWN


def _values(pd, values):
    items = values.tolist()
    missing = [False] * len(items) if isinstance(values, pd.MultiIndex) else pd.isna(values)
    if not any(missing):
        return items
    return [None if gone else item for item, gone in zip(items, missing)]


def _standard(value):
    if isinstance(value, float) and value - value != 0:
        return {"$float": "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value))
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, complex):
        return {"real": value.real, "imag": value.imag}
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    return _UNKNOWN


def _matplotlib(value):
    figures = sys.modules.get("matplotlib.figure")
    if figures is None or not hasattr(figures, "Figure"):
        return _UNKNOWN
    axes = sys.modules.get("matplotlib.axes")
    if axes is not None and isinstance(value, axes.Axes):
        value = value.figure
    if not isinstance(value, figures.Figure):
        return _UNKNOWN
    name = _saved_figures.get(value)
    if name is None:
        name = _saved_figures[value] = _save(value)
    return name


def _save(figure):
    number = 1
    while True:
        name = f"figure-{number}.png"
        try:
            with open(name, "xb") as file:
                figure.savefig(file, format="png")
            return name
        except FileExistsError:
            number += 1
