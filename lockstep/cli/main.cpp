// The command line tool `lockstep`.
#include "lockstep/cli/app.h"

int main(int argc, char** argv) { return lockstep::cli::run_app(argc, argv); }
