// This file is empty: it is found where no precompiled file fits (see BUILD).
