"""Data files as strings of the program."""

def embedded_files(name, srcs, suffix, header, type, function):
    """Writes NAME.cc, in which FUNCTION() returns the files.

    Args:
      name: name of the rule; the file is NAME.cc.
      srcs: the files.
      suffix: the end of their names that the embedded name lacks.
      header: declares TYPE, a struct of name, path and text, and
        `const std::vector<TYPE>& FUNCTION()` in optrail::suites.
      type: the struct.
      function: the function.
    """
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [name + ".cc"],
        cmd = """{
          echo '#include "%s"'
          echo 'namespace optrail::suites {'
          echo 'const std::vector<%s>& %s() {'
          echo '  static const auto* const files = new std::vector<%s>{'
          for file in $(SRCS); do
            name=$$(basename $$file %s)
            echo -n "  {\\"$$name\\", \\"$$file\\", R\\"embedded("
            cat $$file
            echo ')embedded"},'
          done
          echo '  };'
          echo '  return *files;'
          echo '}'
          echo '}  // namespace optrail::suites'
        } > $@""" % (header, type, function, type, suffix),
    )
