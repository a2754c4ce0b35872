#!/usr/bin/env python3
"""Holds that nothing here changes the settings of a device or a processor.

  leave_settings_test.py WORKSPACE_FILE

Clocks, power limits, modes and governors of a machine that is lent are read and
left alone. No source may name a function or a file that sets one: NVML's
setters, options of nvidia-smi that need the administrator, or a write to
cpufreq.
"""

import os
import re
import sys

ENDINGS = ('.cc', '.h', '.cu', '.cuh', '.py', '.sh', '.bzl', '.bazelrc')
SETTERS = re.compile(
    r'nvml(Device|Unit|Gpu)(Set|Reset|Clear|Modify)\w*'
    r'|nvidia-smi[^"\n]*\s(-pl|-pm|-lgc|-lmc|-ac|-rgc|-rac|-c|-mig|-r)\b'
    r'|nvidia-settings\s+-a|cpupower\s+frequency-set|cpufreq-set'
    r'|>\s*/sys/devices/system/cpu'
    r'|(ofstream|"w"|O_WRONLY|O_RDWR)[^\n]*/sys/(devices|class)/')
# Advice to people, which nothing runs.
ADVICE = {('cli/doctor.cc', 'cpupower frequency-set')}
OWN = os.path.join('ci', 'leave_settings_test.py')


def setters(text):
    """(line number, what sets) of each that a text names."""
    for number, line in enumerate(text.split('\n'), 1):
        found = SETTERS.search(line)
        if found:
            yield number, found.group()


def main():
    for sample in ('nvmlDeviceSetPowerManagementLimit(device, 400000)',
                   'nvidia-smi -i 0 -pl 400', 'echo x > /sys/devices/system/cpu'):
        if not list(setters(sample)):
            sys.exit('the check does not see: ' + sample)
    root = os.path.dirname(os.path.realpath(sys.argv[1]))
    failures = seen = 0
    for folder, folders, files in os.walk(root):
        folders[:] = [each for each in folders
                      if not each.startswith(('.', 'bazel-', 'shared'))]
        for file in files:
            path = os.path.join(folder, file)
            name = os.path.relpath(path, root)
            if not file.endswith(ENDINGS) or name == OWN:
                continue
            seen += 1
            with open(path, errors='replace') as opened:
                for number, what in setters(opened.read()):
                    if (name, what) in ADVICE:
                        continue
                    failures += 1
                    print('%s:%d: %s changes a setting; expected code that '
                          'only reads' % (name, number, what))
    if seen < 500:
        sys.exit('only %d sources were found in %s' % (seen, root))
    print('%d sources, %d failures' % (seen, failures))
    sys.exit(failures > 0)


if __name__ == '__main__':
    main()
