#pragma once

#include "command_line.h"
#include "context.h"

// One file a subcommand; each registers itself here and is wired by main.cc.
namespace holdfast::command {

void register_run(CommandLine& line, const Context& context);
void register_ls(CommandLine& line, const Context& context);
void register_show(CommandLine& line, const Context& context);
void register_watch(CommandLine& line, const Context& context);
void register_release(CommandLine& line, const Context& context);
void register_init(CommandLine& line, const Context& context);
void register_doctor(CommandLine& line, const Context& context);
void register_bench(CommandLine& line, const Context& context);
void register_torture(CommandLine& line, const Context& context);
void register_task(CommandLine& line, const Context& context);
void register_version(CommandLine& line, const Context& context);

}  // namespace holdfast::command
