#ifndef PLANEWISE_CLIENTS_CLI_VERSION_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_VERSION_COMMAND_H_
// planewise version: versions of this program and of the daemon.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddVersionCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_VERSION_COMMAND_H_
