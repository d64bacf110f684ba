// The smallest user of Choir: fails if the library is not the one its headers belong to.
#include <choir/choir.h>
#include <stdio.h>

int main(void)
{
	printf("choir %d\n", choir_version());
	return choir_version() != CHOIR_VERSION;
}
