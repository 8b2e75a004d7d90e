#ifndef PLANEWISE_CLIENTS_CLI_DELETE_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_DELETE_COMMAND_H_
// planewise delete: stops hosting a model.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddDeleteCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_DELETE_COMMAND_H_
