// The chief reads the file and sends its bytes to all workers.
#include "base/alloc.h"
#include "base/status.h"
#include "train/weights/weights.h"

#include <string.h>

static choir_status read_all(const char *path, chi_weights_file *w)
{
	chi_file *f = chi_file_open(path);
	CHOIR_TRY(chi_made(f));
	const uint64_t bytes = chi_file_size(f);
	w->data = bytes > SIZE_MAX - 1 ? NULL : chi_alloc_aligned((size_t) bytes + 1);
	w->bytes = (size_t) bytes;
	const choir_status status = w->data == NULL ? chi_error_prefix("%s", path)
												: chi_file_read(f, 0, w->data, w->bytes);
	chi_file_close(f);
	return status;
}

static choir_status share(choir_strategy *s, chi_weights_file *w)
{
	void *data = w->data;
	const choir_status status = chi_strategy_share(s, &data, &w->bytes, "weights");
	w->data = data;
	return status;
}

choir_status chi_weights_read(
		choir_strategy *s, choir_status status, const char *path, chi_weights_file *w)
{
	if (status == CHOIR_OK && choir_strategy_is_chief(s))
		status = read_all(path, w);
	CHOIR_TRY(chi_strategy_agree(s, status, "reading weights"));
	CHOIR_TRY(share(s, w));
	status = chi_safetensors_view(&w->header, path, w->data, w->bytes);
	CHOIR_TRY(chi_strategy_agree(s, status, "the header of weights"));
	// The front is aligned for all dtypes.
	memmove(w->data, w->data + w->header.data, w->bytes - (size_t) w->header.data);
	return CHOIR_OK;
}

void chi_weights_file_free(chi_weights_file *w)
{
	chi_free(w->data);
	chi_safetensors_close(&w->header);
}
