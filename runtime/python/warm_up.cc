#include "runtime/python/warm_up.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <new>
#include <string>

#include "runtime/python/call_state.h"
#include "runtime/python/compile.h"
#include "runtime/python/describe.h"
#include "runtime/python/epilogue.h"
#include "runtime/python/evaluate.h"
#include "runtime/python/project.h"
#include "runtime/python/py_error.h"
#include "runtime/python/source.h"

namespace pyplaypen::python {
namespace {

constexpr size_t kValueLimit = 1'000'000;

// Each is a source of its own: they are compiled, run and reported as a call's is.
constexpr std::array kSources = {
    R"(1 + 1
)",
    R"(words = 'the quick brown fox jumps over the lazy dog'.split()
counts = {}
for word in words:
    counts[word] = counts.get(word, 0) + 1
longest = max(words, key=len)
[counts, longest, sum(counts.values())]
)",
    R"(words = 'the quick brown fox jumps over the lazy dog'.split()
squares = [i * i for i in range(30) if i % 2]
table = {word: len(word) for word in words}
unique = {len(word) for word in words}
total = sum(round(i / 7, 3) for i in range(20))
text = f'{longest!r:>12} {total:.2f} {3.14159:8.3f} {255:#x} {1e300} {10 ** 20:,}'
parts = ', '.join(sorted(set(text.upper().replace('A', 'b').strip().split())))
pairs = sorted(zip(words, range(9)), key=lambda pair: (-len(pair[0]), pair[1]))
first, *rest = pairs
'%s %5d %r' % ('a', 12, None)
'{} {name}'.format(1, name=2)
raw = bytes(range(20)).hex() + 'é€'.encode().decode()
any(c.isdigit() for c in text), all(map(str.isalpha, words)), list(filter(None, [0, 1]))
[first, list(map(str, squares)), table, sorted(unique), total, text, parts, raw, None, True, 2.5]
)",
    R"(class Shape:
    kinds = []

    def __init__(self, name, side=1.0):
        self.name = name
        self.side = side

    @property
    def area(self):
        return self.side ** 2

    def __repr__(self):
        return f'{type(self).__name__}({self.name!r})'

    def __eq__(self, other):
        return isinstance(other, Shape) and self.name == other.name


class Square(Shape):
    def scaled(self, factor=2, *rest, **options):
        return Square(self.name, self.side * factor)


def walk(n):
    while n > 1:
        yield n
        n = n // 2 if n % 2 == 0 else 3 * n + 1


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


shape = Square('a').scaled(3)
try:
    {}['missing']
except KeyError as error:
    caught = repr(error)
finally:
    done = True
try:
    int('x')
except (ValueError, TypeError) as error:
    caught += str(error)
with_walk = list(walk(27))
{'area': shape.area, 'repr': repr(shape), 'fib': fib(10), 'walk': with_walk[:5], 'caught': caught}
)",
    R"(import sys
loaded = sys.modules
if 'io' in loaded:
    import io
    out = io.TextIOWrapper(io.BytesIO(), encoding='utf-8', line_buffering=True)
    print('a line', 1, 2.5, [1, 'é'], file=out)
    print('x' * 200, end='', file=out, flush=True)
if 'json' in loaded:
    import json
    json.loads(json.dumps({'a': [1, 2.5, None, True, 'é'], 'b': {'c': 'd'}}, indent=1))
)",
    R"(import sys
loaded = sys.modules
if 're' in loaded and 'time' in loaded:
    import re, time
    # One that is in no cache: the zygote has compiled all that is always the same.
    pattern = re.compile(r'^(?P<day>\d{2}-\d+)? ([A-Z]+|x*) (.*)$|%d' % time.time_ns(), re.M)
    [match.groupdict() for match in pattern.finditer('12-1 AB c\n d')]
    re.sub(r'(\w+)@(\w+)\.com', r'\2', 'mail a@b.com now')
    re.findall(r'\d+', 'a1b22')
if 'datetime' in loaded:
    import datetime
    day = datetime.date(2024, 2, 28) + datetime.timedelta(days=2)
    str(datetime.datetime(2024, 1, 1, 12).isoformat()), day.strftime('%Y-%m-%d')
    datetime.datetime.strptime('2024-01-02', '%Y-%m-%d')
)",
    R"(import sys
loaded = sys.modules
if 'collections' in loaded:
    import collections
    collections.Counter('abca').most_common(1), collections.defaultdict(list)['a'].append(1)
    collections.deque([1, 2]).popleft()
if 'itertools' in loaded:
    import itertools
    list(itertools.combinations(range(4), 2)), list(itertools.chain([1], [2]))
if 'functools' in loaded:
    import functools
    functools.reduce(lambda a, b: a + b, [1, 2]), functools.lru_cache(None)(len)('a')
if 'math' in loaded:
    import math
    math.sqrt(2), math.gcd(12, 18), math.factorial(20), math.pi
if 'decimal' in loaded:
    import decimal
    str(decimal.Decimal('1.10') + decimal.Decimal(2))
)",
    R"(import sys
if 'numpy' in sys.modules:
    import numpy as np
    a = np.arange(12).reshape(3, 4)
    float((a @ a.T).sum() + a.mean(axis=0).std()), a[a > 3].tolist(), repr(a), np.sqrt(a).round(2)
    np.linspace(0, 1, 5).cumsum(), np.concatenate([a, a]).astype(float)
    np.linalg.det(np.eye(3) * 2.0)
if 'pandas' in sys.modules:
    import pandas as pd
    frame = pd.DataFrame({'k': ['a', 'b', 'a'], 'v': [1, 2, 3], 'w': [0.5, None, 1.5]})
    frame.groupby('k')['v'].sum(), frame[frame['v'] > 1], str(frame), frame.describe()
    frame.sort_values('v').to_dict('records'), frame['w'].fillna(0).mean()
)",
    R"(import sys
loaded = sys.modules
if 'collections' in loaded:
    from collections import namedtuple
    namedtuple('Point', 'x y')(1, 2)._replace(y=5)
if 'statistics' in loaded:
    import statistics
    statistics.mean([2.5, 3.1]), statistics.median([2, 3]), statistics.stdev([2.5, 3.1, 4.7])
if 'random' in loaded:
    import random
    random.Random(1).sample(range(10), 3)
)",
    R"(import sys
if 'enum' in sys.modules:
    import enum

    class Color(enum.Enum):
        RED = 1
        GREEN = 2

    Color(2).name, Color['RED'], list(Color)
)",
    R"(def outer(n):
    return inner(n - 1)


def inner(n):
    if n > 0:
        return outer(n)
    raise ValueError('at the end: %d' % n)


try:
    [][1]
except IndexError:
    outer(4)
)",
    R"(x = (1,
)",
};

bool is_readable(int fd) {
  pollfd state{fd, POLLIN, 0};
  return fd >= 0 && ::poll(&state, 1, 0) > 0;
}

// The same environment once more: the first time copies pages of the heap.
void renew_environment(const Captured& captured) {
  wire::Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) return;  // cannot be set again: leave it
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  apply_environment(captured, environment);
}

void run_one(const Captured& captured, const Extensions& extensions, const std::string& text) {
  const PyRef names = PyRef::steal(PyDict_New());
  const PyRef module_name = PyRef::steal(PyUnicode_InternFromString("__main__"));
  if (!names || !module_name ||
      PyDict_SetItemString(names.get(), "__name__", module_name.get()) != 0 ||
      PyDict_SetItemString(names.get(), "__builtins__", PyEval_GetBuiltins()) != 0) {
    return;
  }
  const Source source(text);
  wire::Report report;
  const PyRef lines = source.lines();
  const std::optional<Compiled> compiled = compile_source(captured, source);
  PyRef exception;
  if (!compiled) {
    exception = take_failure();
  } else {
    const Evaluation evaluation = evaluate(captured, *compiled, names.get());
    exception = evaluation.exception;
    if (evaluation.value) {
      project(captured, extensions, evaluation.value.get(), kValueLimit, report);
    }
  }
  if (exception) describe(captured, source, exception.get(), report);
}

}  // namespace

void warm_up(const Captured& captured, const Extensions& extensions, int request_fd) noexcept {
  for (const char* source : kSources) {
    if (is_readable(request_fd)) return;
    try {
      run_one(captured, extensions, source);
    } catch (const std::bad_alloc&) {
      // The call will meet the same and say so.
    }
    PyErr_Clear();
  }
  if (is_readable(request_fd)) return;
  try {
    renew_environment(captured);
  } catch (const std::bad_alloc&) {
    // As above.
  }
  warm_up_finish(captured);
  PyErr_Clear();
}

}  // namespace pyplaypen::python
