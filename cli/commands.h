// The commands. Each gets the arguments after its name and returns the exit code.
#pragma once

int train_main(int argc, char **argv);
int predict_main(int argc, char **argv);
int sample_main(int argc, char **argv);
int export_main(int argc, char **argv);
int import_main(int argc, char **argv);
int inspect_main(int argc, char **argv);
int replay_main(int argc, char **argv);
int trace_main(int argc, char **argv);
int report_main(int argc, char **argv);
int run_main(int argc, char **argv);
int status_main(int argc, char **argv);
int devices_main(int argc, char **argv);
int serve_main(int argc, char **argv);
int key_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int bench_main(int argc, char **argv);
