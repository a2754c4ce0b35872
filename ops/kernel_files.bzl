"""Which files the kernels of an operator may be made of.

The build knows: whatever a kernel includes stands in the srcs, hdrs or
textual_hdrs of a library that the operator depends on. `kernel_files_aspect`
collects those of all libraries below `deps`. They are candidates, no more:
the target closure is too wide for an id, since backends share libraries. The
generator of the registration walks along #include from a backend's own files
and takes what it reaches (ops/core/kernel_sources.h).
"""

KernelFiles = provider(
    doc = "Sources and headers of a library and of all that it depends on.",
    fields = {"files": "depset of File"},
)

# The name of this repository, empty where it is the workspace itself.
OPTRAIL = Label("//ops:all").workspace_name

_SOURCES = ["srcs", "hdrs", "textual_hdrs"]

def _kernel_files_aspect_impl(target, ctx):
    files = []
    for attribute in _SOURCES:
        files += getattr(ctx.rule.files, attribute, [])
    below = [
        dep[KernelFiles].files
        for dep in getattr(ctx.rule.attr, "deps", [])
        if KernelFiles in dep
    ]
    return [KernelFiles(files = depset(
        files,
        transitive = below,
    ))]

kernel_files_aspect = aspect(
    implementation = _kernel_files_aspect_impl,
    attr_aspects = ["deps"],
)

# Of Optrail, kernels are what stands below ops/ without these: the runtime
# around kernels, and what decides what is right, not what is fast.
LEFT_OUT = [
    "ops/core/",
    "ops/device/",
    "ops/lib/reference.",
]

def _is_candidate(file, own_repository):
    repository = file.owner.workspace_name
    if repository == OPTRAIL:
        path = file.owner.package + "/" + file.owner.name
        if not path.startswith("ops/"):
            return False
        for prefix in LEFT_OUT:
            if path.startswith(prefix):
                return False
        return True

    # An operator of another workspace: all of that, and nothing of a third.
    return repository == own_repository

def kernel_files(deps, own_repository):
    """The files below `deps` that kernels may be made of.

    Args:
      deps: targets that kernel_files_aspect has seen.
      own_repository: workspace_name of the operator's label.

    Returns:
      Sources, which are candidates for ids; generated files, which are not: a
      space's knobs are no part of an id, since a config that is added shall
      void nothing.
    """
    files = [
        file
        for file in depset(transitive = [dep[KernelFiles].files for dep in deps if KernelFiles in dep]).to_list()
        if _is_candidate(file, own_repository)
    ]
    sources = [file for file in files if file.is_source]
    return sources, [file for file in files if not file.is_source]
