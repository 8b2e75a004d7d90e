#ifndef PLANEWISE_CLIENTS_CLI_LS_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_LS_COMMAND_H_
// planewise ls: the hosted models, a line each.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddLsCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_LS_COMMAND_H_
