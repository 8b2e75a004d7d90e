#ifndef PLANEWISE_CLIENTS_CLI_GET_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_GET_COMMAND_H_
// planewise get: writes weights of a hosted model to a safetensors file.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddGetCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_GET_COMMAND_H_
