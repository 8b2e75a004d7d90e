#ifndef PLANEWISE_CLIENTS_CLI_SAVE_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_SAVE_COMMAND_H_
// planewise save: makes the newest version durable.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddSaveCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_SAVE_COMMAND_H_
