#include "cli/optrail.h"

int main(int argc, char** argv) { return optrail::cli::RunOptrail(argc, argv); }
