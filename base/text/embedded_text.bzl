"""A file as a string literal of C++."""

def embedded_text(name, src):
    """Makes NAME.inc, to be included where the text of a file is wanted.

    constexpr char kTables[] =
    #include "fleet/fleet_1.inc"
        ;

    Args:
      name: of the target and, with .inc, of the file to include
      src: the file; it may not hold )text"
    """
    native.genrule(
        name = name,
        srcs = [src],
        outs = [name + ".inc"],
        cmd = "(echo 'R\"text('; cat $<; echo ')text\"') > $@",
    )
