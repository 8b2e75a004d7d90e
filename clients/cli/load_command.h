#ifndef PLANEWISE_CLIENTS_CLI_LOAD_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_LOAD_COMMAND_H_
// planewise load: the daemon reads, quantizes and hosts a model.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddLoadCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_LOAD_COMMAND_H_
