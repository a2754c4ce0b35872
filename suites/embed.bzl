"""Data files as strings of the program."""

def embedded_files(name, srcs, suffix, header, function):
    """Writes NAME.cc, in which FUNCTION() returns the files.

    Args:
      name: name of the rule; the file is NAME.cc.
      srcs: the files.
      suffix: the end of their names that the embedded name lacks.
      header: declares `const std::vector<NamedFile>& FUNCTION()` in
        optrail::suites (suites/workload/named_file.h).
      function: the function.
    """
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [name + ".cc"],
        cmd = """{
          echo '#include "%s"'
          echo 'namespace optrail::suites {'
          echo 'const std::vector<NamedFile>& %s() {'
          echo '  static const auto* const files = new std::vector<NamedFile>{'
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
        } > $@""" % (header, function, suffix),
    )
