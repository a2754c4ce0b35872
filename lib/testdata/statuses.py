"""What the Python package refuses, and how."""

import os
import sys
import threading

import numpy
import optrail

checks = 0


def refuses(kind, text, action):
    global checks
    checks += 1
    try:
        action()
    except kind as error:
        assert text in str(error), f"{error}: expected {text}"
        return error
    raise SystemExit(f"nothing was refused where {text} was expected")


x = numpy.ones((4, 8), numpy.float32)
plan = optrail.Plan("softmax", "rows=4,cols=8/f32")
assert plan.choice.source == "default config"
assert [o.role for o in plan.operands] == ["input", "output"]
assert optrail.hardware_id() and "matmul" in optrail.operators()
out = numpy.zeros((4, 8), numpy.float32)
assert plan(x, out=out) is out and numpy.allclose(out, 1 / 8)

refuses(TypeError, "float64", lambda: plan(x.astype(float)))
refuses(TypeError, "list", lambda: plan([1.0]))
refuses(TypeError, ">f4", lambda: plan(x.astype(">f4")))
refuses(ValueError, "(8, 4)", lambda: plan(x.reshape(8, 4)))
refuses(ValueError, "dense", lambda: plan(numpy.asfortranarray(x)))
refuses(ValueError, "expected 1: x", lambda: plan(x, x))
frozen = numpy.zeros((4, 8), numpy.float32)
frozen.flags.writeable = False
refuses(ValueError, "read-only", lambda: plan(x, out=frozen))
refuses(optrail.Error, "overlaps", lambda: plan(x, out=x))
error = refuses(optrail.Error, "nosuch", lambda: optrail.Plan("nosuch", "n=1/f32"))
assert error.status == "NOT_FOUND"
refuses(optrail.Error, "/nowhere", lambda: optrail.Store("/nowhere"))
refuses(optrail.Error, "unsupported here",
        lambda: optrail.Plan("softmax", "rows=4,cols=8/f32", device="cuda"))
assert optrail.infer_shape("matmul", [((3, 5), "f32"), ((5, 4), "f32")]) == "m=3,n=4,k=5/f32"
refuses(optrail.Error, "expected 5x", lambda: optrail.infer_shape(
    "matmul", [((3, 5), "f32"), ((6, 4), "f32")]))
refuses(optrail.Error, "2 inputs", lambda: optrail.infer_shape(
    "matmul", [((3, 5), "f32"), ((5, 4), "f32"), ((1,), "f32")]))
assert [o.name for o in optrail.operands("softmax", "rows=4,cols=8/f32")] == ["x", "y"]
store = optrail.Store()
assert len(store.digest) == 16
choice = store.lookup("softmax", "rows=4,cols=8/f32")
assert choice.source == "default config" and "cols" in choice.warning
# What C has no room for, and what it would not see the end of.
for count in 2**31, 2**40, -2**31 - 1:
    refuses(ValueError, f"threads is {count}", lambda: optrail.Plan(
        "softmax", "rows=4,cols=8/f32", threads=count))
refuses(ValueError, "count is", lambda: optrail.Threads(2**33 + 2))
refuses(ValueError, "a dimension is", lambda: optrail.shape_text("softmax", [2**64 + 3, 5]))
refuses(ValueError, "a dimension is", lambda: optrail.infer_shape(
    "softmax", [((2**64 + 3, 5), "f32")]))
refuses(TypeError, "", lambda: optrail.shape_text("softmax", [1.5, 5]))
refuses(ValueError, "NUL", lambda: optrail.Plan("softmax\0max", "rows=4,cols=8/f32"))
refuses(TypeError, "threads is a int", lambda: plan(x, threads=2))
refuses(TypeError, "store is a str", lambda: optrail.Plan(
    "softmax", "rows=4,cols=8/f32", store="path"))
refuses(optrail.Error, "not counted", lambda: optrail.observe(None))
store.close()
store.close()
refuses(ValueError, "closed", lambda: store.lookup("softmax", "rows=4,cols=8/f32"))

# Threads of Python's run one plan at the same time.
results = [None] * 8
workers = [threading.Thread(target=lambda i=i: results.__setitem__(i, plan(x * i)))
           for i in range(8)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
assert all(numpy.allclose(y, 1 / 8) for y in results)

# A child of fork() has the plan and no threads.
threads = optrail.Threads(2)
both = optrail.Plan("softmax", "rows=4,cols=8/f32", threads=2)
both(x, threads=threads)
child = os.fork()
if child == 0:
    refuses(optrail.Error, "fork()", lambda: both(x, threads=threads))
    os._exit(0 if numpy.allclose(both(x), 1 / 8) else 1)
assert os.waitpid(child, 0)[1] == 0
print(f"{checks} refusals", file=sys.stderr)
